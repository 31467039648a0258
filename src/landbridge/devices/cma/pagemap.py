"""A proof that memory is contiguous, by ``/proc/self/pagemap`` (Linux, Documentation/admin-guide/mm/pagemap.rst).

Its addresses are those of the CPU, which devices are never given. Pages that are not pinned may move later.
"""

from __future__ import annotations

import array
import ctypes
import mmap
from itertools import pairwise
from pathlib import Path

PAGEMAP = Path("/proc/self/pagemap")

_FRAME = (1 << 55) - 1  # 0 for processes without the permission
_PRESENT = 1 << 63


def is_contiguous(address: int, nbytes: int, pagemap: Path = PAGEMAP, page_bytes: int = mmap.PAGESIZE) -> bool | None:
    """Returns whether the pages of the ``nbytes`` readable bytes from ``address`` on are adjacent in memory.

    ``page_bytes``: of each page, which is contiguous in itself. None where that is unknown: without CAP_SYS_ADMIN, and
    for mappings of other than ordinary pages.
    """
    first, last = address // page_bytes, -(-(address + nbytes) // page_bytes)
    for page in (address, *range((first + 1) * page_bytes, address + nbytes, page_bytes)):
        ctypes.string_at(page, 1)  # a page that nobody touched has no frame yet
    step = page_bytes // mmap.PAGESIZE
    entries = array.array("Q")
    try:
        with pagemap.open("rb", buffering=0) as file:
            if step == 1:
                file.seek(first * entries.itemsize)
                entries.frombytes(file.read((last - first) * entries.itemsize))
            for page in range(first, last) if step > 1 else ():
                file.seek(page * step * entries.itemsize)
                entries.frombytes(file.read(entries.itemsize))
    except OSError:
        return None
    frames = [entry & _FRAME for entry in entries if entry & _PRESENT]
    if len(frames) < last - first or not all(frames):
        return None
    return all(after == before + step for before, after in pairwise(frames))
