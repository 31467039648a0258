"""Pickling of tensors by value.

Memory that the host reads in place is given to a pickler of protocol 5 as it is (``pickle.PickleBuffer``), so that a
pickler with a ``buffer_callback`` copies nothing. A Tensor that is read from such a pickle uses the reader's bytes in
place.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex, TypeVar

import numpy as np

from landbridge.device.registry import device as find_device
from landbridge.dtypes import dtype_name, stored_dtype
from landbridge.errors import DeviceError, InputError
from landbridge.memory import ledger
from landbridge.memory.allocation import allocate
from landbridge.memory.borrowed import host_device
from landbridge.memory_kind import GLOBAL_SCOPE
from landbridge.shapes.strides import row_major, same_layout
from landbridge.tensor.copy import copy_to
from landbridge.tensor.typed_view import TypedView

if TYPE_CHECKING:
    from typing import TypeAlias

_View = TypeVar("_View", bound=TypedView)
_Reduced: TypeAlias = "tuple[Callable[..., _View], tuple[Any, ...]]"


class PickledLocation(NamedTuple):
    """The location of a Tensor outside ordinary memory of the host: its device, scope and axis separators.

    ``landbridge.empty`` takes the same three.
    """

    device: str
    scope: str
    axis_separators: tuple[int, ...]


class CopiedByValue:
    """A mixin that pickles and copies a Tensor."""

    __slots__ = ()

    def __reduce_ex__(self: _View, protocol: SupportsIndex, /) -> _Reduced[_View]:
        """Returns a function that makes the Tensor, and its arguments, which hold the elements.

        Waits for pending writers. Elements that are strided, or that the host cannot read in place, are copied to the
        host, which the ledger calls ``pickle``. Raises what such a copy does.
        """
        storage, kind = self.storage, self.storage.kind
        location = None
        if storage.device != host_device() or kind.scope != GLOBAL_SCOPE:
            location = PickledLocation(str(storage.device), kind.scope, self.axis_separators)
        is_dense = not self.axis_separators and same_layout(self.shape, self.strides, row_major(self.shape))
        in_place = is_dense and kind.host_readable and kind.coherent
        array = (self if in_place else copy_to(self, host_device(), "pickle")).__array__()
        content = array.reshape(-1).view(np.uint8)  # arrays of ml_dtypes are no buffers
        facts = (self.dtype, self.shape, location)
        if index(protocol) >= 5:
            from pickle import PickleBuffer  # an import of 2 ms, which a program that pickles has spent already

            return from_buffer, (type(self), PickleBuffer(content.data), *facts)
        ledger.announce(
            array.nbytes, cause="pickle", tensor=repr(self), source=str(storage.device), destination="pickle"
        )
        return from_bytes, (type(self), content.tobytes(), *facts)

    def __copy__(self: _View) -> _View:
        """Returns another Tensor over the same bytes; ``copy`` copies them."""
        return type(self)(
            self.storage,
            self.dtype,
            self.shape,
            self.strides,
            self.byte_offset,
            readonly=self.readonly,
            axis_separators=self.axis_separators,
        )

    def __deepcopy__(self: _View, memo: object) -> _View:
        """Returns a dense copy in the same scope of the same device; the ledger's cause is ``copy``."""
        storage = self.storage
        return copy_to(self, storage.device, "copy", None, storage.kind.scope, self.axis_separators)


def from_buffer(
    created: type[_View], buffer: Any, dtype: str, shape: tuple[int, ...], location: PickledLocation | None = None
) -> _View:
    """Returns a Tensor of the elements in ``buffer``: on the host over these bytes, read-only if the buffer is.

    Bytes that do not begin at a multiple of the element's size are copied; those of a Tensor with another ``location``
    are copied there. Raises InputError for a buffer of another size, DeviceError where the device of ``location`` does
    not exist here.
    """
    array = _elements(buffer, dtype, shape)
    return (
        created.from_numpy_view(array) if array.flags.aligned and location is None else _owned(created, array, location)
    )


def from_bytes(
    created: type[_View], content: bytes, dtype: str, shape: tuple[int, ...], location: PickledLocation | None = None
) -> _View:
    """Returns a Tensor with its own memory and the elements in ``content``; raises as ``from_buffer`` does."""
    return _owned(created, _elements(content, dtype, shape), location)


def _elements(content: Any, dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    found = np.frombuffer(content, np.uint8)
    try:
        return found.view(stored_dtype(dtype_name(dtype))).reshape(shape)
    except ValueError as error:
        raise InputError(
            f"a pickled Tensor {dtype}{list(shape)} comes with {found.nbytes} bytes ({error}); give the buffers that "
            "its pickling gave, in their order"
        ) from error


def _owned(created: type[_View], array: np.ndarray[Any, Any], location: PickledLocation | None) -> _View:
    """Returns a Tensor with its own memory at ``location`` and the elements of ``array``; the ledger's cause is
    ``unpickle``.
    """
    if location is None or not array.flags.aligned:
        owned = created(allocate(host_device(), array.nbytes), dtype_name(array.dtype), array.shape)
        aligned = owned.__array__()
        ledger.copy_array(aligned, array, cause="unpickle", tensor=repr(owned), source="pickle", destination="host")
        if location is None:
            return owned
        array = aligned
    try:
        device = find_device(location.device)
    except DeviceError as error:
        raise type(error)(
            f"a pickled Tensor lay on {location.device}, which this process does not have: {error}. Have the device "
            "here, "
            "or pickle tensor.to_device('cpu')"
        ) from error
    tensor = created.from_numpy_view(array)
    return copy_to(tensor, device, "unpickle", scope=location.scope, axis_separators=location.axis_separators)
