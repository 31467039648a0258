"""Memory of a board's own allocator, a function that returns file descriptors."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import ClassVar

from landbridge.devices.cma.source import Piece
from landbridge.errors import OutOfMemoryError
from landbridge.records import record


@record(frozen=True)
class CallableSource:
    """Memory of ``call(nbytes)``, which returns a descriptor, ours to close, of ``nbytes`` zeroed bytes from offset 0
    on.

    The other fields are what the board promises of that memory; None is unknown.
    """

    call: Callable[[int], int]
    name: str = "board"
    unit: int = mmap.PAGESIZE
    cached: bool = True
    physically_contiguous: bool | None = None
    pinned: bool = False
    max_bytes: int | None = None
    page_bytes: ClassVar[int] = mmap.PAGESIZE
    capacity: ClassVar[int | None] = None
    by_name: ClassVar[bool] = False

    def missing(self) -> str | None:
        """Returns None, as the caller provided the source."""
        return None

    def allocate(self, nbytes: int, alignment: int) -> Piece:
        """Returns the memory that the call gives; raises OutOfMemoryError for its exceptions."""
        try:
            return Piece(self.call(nbytes))
        except (OSError, MemoryError) as error:
            raise OutOfMemoryError(f"{self.name} has no {nbytes} bytes: {error}") from error
