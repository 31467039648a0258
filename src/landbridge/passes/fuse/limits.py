"""The size limit of a fused body: above it, the values of a row would no longer fit in registers."""

from __future__ import annotations

MAX_BODY_OPS = 192
MAX_OPERANDS = 24
