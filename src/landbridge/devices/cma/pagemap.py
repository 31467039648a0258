"""Whether memory is contiguous, as ``/proc/self/pagemap`` proves it (Linux, Documentation/admin-guide/mm/pagemap.rst).

Its addresses are those of the CPU: no device is ever told one. What nothing pins may lie elsewhere a moment later.
"""

from __future__ import annotations

import array
import ctypes
import mmap
from itertools import pairwise
from pathlib import Path

PAGEMAP = Path("/proc/self/pagemap")

_FRAME = (1 << 55) - 1  # 0 for processes that may not know it
_PRESENT = 1 << 63


def is_contiguous(address: int, nbytes: int, pagemap: Path = PAGEMAP) -> bool | None:
    """Whether the pages of the ``nbytes`` bytes from ``address`` on, which can be read, follow each other in memory.

    None where that cannot be known: without CAP_SYS_ADMIN, and for mappings of no ordinary pages.
    """
    first, last = address // mmap.PAGESIZE, -(-(address + nbytes) // mmap.PAGESIZE)
    for page in (address, *range((first + 1) * mmap.PAGESIZE, address + nbytes, mmap.PAGESIZE)):
        ctypes.string_at(page, 1)  # a page that nobody touched has no place yet
    entries = array.array("Q")
    try:
        with pagemap.open("rb", buffering=0) as file:
            file.seek(first * entries.itemsize)
            entries.frombytes(file.read((last - first) * entries.itemsize))
    except OSError:
        return None
    frames = [entry & _FRAME for entry in entries if entry & _PRESENT]
    if len(frames) < last - first or not all(frames):
        return None
    return all(after == before + 1 for before, after in pairwise(frames))
