"""Elements: what a capsule describes."""

from __future__ import annotations

from typing import NamedTuple

from landbridge.dtypes import dtype
from landbridge.memory.storage import Storage
from landbridge.shape import reach


class Elements(NamedTuple):
    """``shape`` elements of ``dtype`` at ``byte_offset`` of ``storage``; ``strides`` count elements."""

    storage: Storage
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    byte_offset: int

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)} on {self.storage.device}"

    @property
    def byte_range(self) -> tuple[int, int]:
        """The half-open range of bytes of ``storage`` that they lie in."""
        low, high = reach(self.shape, self.strides, 1)
        itemsize = dtype(self.dtype).itemsize
        return self.byte_offset + low * itemsize, self.byte_offset + high * itemsize
