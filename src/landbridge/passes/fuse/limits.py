"""The size limit of a fused body: above it, the values of a row would no longer fit in registers."""

from __future__ import annotations

MAX_BODY_OPS = 192
MAX_OPERANDS = 24
#: How often a contraction may read an element where it is; read more often, a copy in the best order pays.
MOST_READS_IN_PLACE = 8
