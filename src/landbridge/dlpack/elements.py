"""The Elements of a DLPack capsule: storage, dtype, shape and strides."""

from __future__ import annotations

from typing import NamedTuple

from landbridge.memory.storage import Storage


class Elements(NamedTuple):
    """``shape`` elements of ``dtype`` at ``byte_offset`` of ``storage``; ``strides`` count elements."""

    storage: Storage
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    byte_offset: int

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)} on {self.storage.device}"
