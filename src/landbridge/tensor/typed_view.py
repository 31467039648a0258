"""TypedView: what host views, copies and exports look at of a Tensor, which is built on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from landbridge.memory.storage import Storage

if TYPE_CHECKING:
    from typing import Self


class TypedView(Protocol):
    """Elements of ``dtype`` in a Storage; its ``repr`` names it in messages."""

    dtype: str
    readonly: bool
    axis_separators: tuple[int, ...]

    def __init__(
        self,
        storage: Storage,
        dtype: str,
        shape: Sequence[int],
        strides: Sequence[int] | None = None,
        byte_offset: int = 0,
        *,
        readonly: bool = False,
        axis_separators: tuple[int, ...] = (),
    ) -> None:
        """The elements from ``byte_offset`` on; ``strides`` None is dense."""

    @classmethod
    def from_numpy_view(cls, array: np.ndarray[Any, Any]) -> Self:
        """``array``'s memory, borrowed."""

    @property
    def storage(self) -> Storage:
        """The bytes."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""

    @property
    def strides(self) -> tuple[int, ...]:
        """Distances between neighbours of each dimension, in elements."""

    @property
    def byte_offset(self) -> int:
        """Where the first element lies in the storage."""

    @property
    def byte_range(self) -> tuple[int, int]:
        """The half-open range of bytes of the storage that the elements lie in."""

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, gaps not counted."""

    @property
    def __dlpack__(self) -> Callable[..., object]:
        """Makes a DLPack capsule over the bytes."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """An array over the bytes."""

    def __dlpack_device__(self) -> tuple[int, int]:
        """The DLPack device type and index of the memory."""
