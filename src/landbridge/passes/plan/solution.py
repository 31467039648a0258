"""Solution: the locations of buffers in one storage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from landbridge.analysis.scopes import Alloc
from landbridge.records import record
from landbridge.sizes.size import Extent


@record(frozen=True)
class Solution:
    """A storage of ``nbytes`` (with extents ``shape`` unless it is flat) and the byte offset of each buffer in it."""

    nbytes: Extent
    offsets: tuple[Extent, ...]
    lower_bound: int
    proved_optimal: bool
    shape: tuple[int, ...] = ()
    dtype: str = "uint8"


#: The buffers of one storage, and their locations in it.
Storage: TypeAlias = tuple[Sequence[Alloc], Solution]
