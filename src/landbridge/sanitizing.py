"""Whether this process was asked to look for wrong accesses."""

from __future__ import annotations

import os

#: Set to anything but 0, every device that is named without a wrapper is sanitized, and CPU kernels are compiled so.
SANITIZE_VARIABLE = "LANDBRIDGE_SANITIZE"


def sanitize_requested() -> bool:
    """What the variable says now."""
    return os.environ.get(SANITIZE_VARIABLE, "0") not in ("", "0")
