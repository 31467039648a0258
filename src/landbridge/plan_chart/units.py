"""Formats bytes in decimal units, and chooses the ticks of an axis of bytes."""

from __future__ import annotations

_UNITS = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


def bytes_text(nbytes: int) -> str:
    """Returns ``nbytes`` with three digits and a decimal unit: 3928576 is "3.93 MB"."""
    for size, unit in _UNITS:
        if nbytes >= size:
            value = nbytes / size
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"
    return f"{nbytes} B"


def byte_ticks(top: int, count: int = 6) -> list[int]:
    """Returns about ``count`` round numbers of bytes from 0 to ``top``."""
    step = 1
    while top > step * count:
        digit = int(str(step)[0])
        step = step * 5 // 2 if digit == 2 else step * 2
    return list(range(0, top + 1, step))
