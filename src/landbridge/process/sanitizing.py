"""Whether the environment of this process requests the sanitizer."""

from __future__ import annotations

import os

#: Set to anything but 0, every device that is named without a wrapper is sanitized, and CPU kernels are compiled so.
SANITIZE_VARIABLE = "LANDBRIDGE_SANITIZE"


def sanitize_requested() -> bool:
    """Returns whether the variable requests it now."""
    return os.environ.get(SANITIZE_VARIABLE, "0") not in ("", "0")
