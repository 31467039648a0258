"""Memory of huge pages that the administrator reserved: in-memory files of ``MFD_HUGETLB``."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

from landbridge.devices.cma.source import Piece
from landbridge.errors import OutOfMemoryError

POOLS = Path("/sys/kernel/mm/hugepages")


class HugePages:
    """Huge pages of ``unit`` bytes; a buffer within one page is contiguous, and nothing pins it."""

    cached = True
    physically_contiguous = None  # True for a buffer of one page; pagemap may know it of others
    pinned = False  # the kernel may migrate them
    capacity = None
    by_name = False

    def __init__(self, unit: int, pools: Path = POOLS) -> None:
        self.unit = self.page_bytes = unit
        self.name = f"huge_{unit >> 20}m"
        self._pool = pools / f"hugepages-{unit >> 10}kB"

    @property
    def max_bytes(self) -> int | None:
        """Returns the bytes of all pages of the pool, and of those the kernel may add."""
        return (_count(self._pool / "nr_hugepages") + _count(self._pool / "nr_overcommit_hugepages")) * self.unit

    def missing(self) -> str | None:
        """Returns that the pool is empty, and how to fill it; None where it has pages."""
        if not self._pool.is_dir():
            return f"{self._pool}: this kernel has no pages of {self.unit} bytes"
        if not self.max_bytes:
            return f"{self._pool}/nr_hugepages is 0: have the administrator write there how many to reserve"
        return None

    def allocate(self, nbytes: int, alignment: int) -> Piece:
        """Returns a file of whole huge pages, reserved by mapping them; raises OutOfMemoryError."""
        flags = os.MFD_CLOEXEC | os.MFD_HUGETLB | (self.unit.bit_length() - 1) << os.MFD_HUGE_SHIFT
        file = -1
        try:
            file = os.memfd_create("landbridge", flags)
            os.ftruncate(file, nbytes)
            # A mapping reserves the pages: without one, the first touch would end the process where none is left.
            mmap.mmap(file, nbytes).close()
            os.posix_fallocate(file, 0, nbytes)
        except OSError as error:
            if file >= 0:
                os.close(file)
            free = _count(self._pool / "free_hugepages")
            raise OutOfMemoryError(
                f"{self._pool} has no {nbytes // self.unit} pages of {self.unit} bytes: {error.strerror}; {free} are "
                f"free, {self._pool}/nr_hugepages says how many there are"
            ) from error
        return Piece(file)


def huge_pages(pools: Path = POOLS) -> list[HugePages]:
    """Returns the pools of 2 MiB and of 1 GiB."""
    return [HugePages(2 << 20, pools), HugePages(1 << 30, pools)]


def _count(file: Path) -> int:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return 0
