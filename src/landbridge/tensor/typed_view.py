"""TypedView: the part of a Tensor that host views, copies and exports use, which Tensor is built on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from landbridge.device.api import Device
from landbridge.memory.storage import Storage

if TYPE_CHECKING:
    from typing import Self


class TypedView(Protocol):
    """A view of elements of ``dtype`` in a Storage; its ``repr`` names it in messages."""

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
        """Make a view of the elements from ``byte_offset`` on; ``strides`` None is dense."""

    @classmethod
    def from_numpy_view(cls, array: np.ndarray[Any, Any]) -> Self:
        """Returns a view that borrows the memory of ``array``."""

    @property
    def storage(self) -> Storage:
        """Returns the Storage of the bytes."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Returns the extents."""

    @property
    def strides(self) -> tuple[int, ...]:
        """Returns the distances between neighbours of each dimension, in elements."""

    @property
    def byte_offset(self) -> int:
        """Returns the position of the first element in the storage, in bytes."""

    @property
    def byte_range(self) -> tuple[int, int]:
        """Returns the half-open range of bytes of the storage that the elements lie in."""

    @property
    def nbytes(self) -> int:
        """Returns the bytes of all elements, without gaps."""

    @property
    def __dlpack__(self) -> Callable[..., object]:
        """Makes a DLPack capsule over the bytes."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Returns an array over the bytes."""

    def __dlpack_device__(self) -> tuple[int, int]:
        """Returns the DLPack device type and index of the memory."""


class ViewText(NamedTuple):
    """A view as messages name it. Its text is made only when a message needs it, and it keeps no memory alive.

    ``device`` is None once the storage was freed.
    """

    dtype: str
    shape: tuple[int, ...]
    device: Device | None
    scope: str
    readonly: bool

    def __str__(self) -> str:
        scope = "" if self.device is None or self.scope == "global" else f", scope={self.scope!r}"
        where = "freed" if self.device is None else self.device
        return f"Tensor({self.dtype}{list(self.shape)}, {where}{scope}{', readonly' if self.readonly else ''})"


def text_of(view: TypedView) -> ViewText:
    """Returns what messages call ``view``."""
    storage = view.storage
    region = storage.region
    device = None if region is None else region.space.device
    return ViewText(view.dtype, view.shape, device, storage.kind.scope, view.readonly)
