"""Arguments: the address of what a caller gives for an input or output, or the reason why it cannot be used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from landbridge.device.protocols import Addresses, MemoryImport
from landbridge.dtypes import dtype_name
from landbridge.errors import HostViewError, InputError, LandbridgeError, ZeroCopyError
from landbridge.memory.borrowed import is_host_memory
from landbridge.memory.extents import unreachable
from landbridge.memory.host_array import address_of
from landbridge.memory.host_use import warn_if_slow
from landbridge.memory.memory_barriers import barriers_of_array
from landbridge.tensor import Tensor, from_dlpack
from landbridge.tensor.imported import import_tensor
from landbridge.vm.buffer_argument import array_of_buffer
from landbridge.vm.by_value import ByValue
from landbridge.vm.device_binding import DeviceBinding
from landbridge.vm.slot import Slot

if TYPE_CHECKING:
    from landbridge.sizes.size import Extent

Array = np.ndarray[Any, Any]


def borrow(slot: Slot, value: Any) -> tuple[int, object]:
    """Returns the address of ``value``'s own memory and the object that keeps it alive; an output's must be writable.

    Where each 100 ns counts, callers first check the common case: a plain array of the slot's dtype and shape whose
    ``flags.carray`` is set.

    Raises InputError when ``value`` does not fit ``slot``, ZeroCopyError when its memory cannot be used in place.
    """
    value = as_memory(slot, value, slot.shape, slot.dtype)
    if slot.binding is not None:
        return _on_device(slot, slot.binding, value)
    if isinstance(value, np.ndarray) and not needs_barriers(value):
        if value.dtype == slot.dtype and value.shape == slot.shape:
            if slot.strides is None and value.flags.carray:  # contiguous, aligned to its elements, writable
                return address_of(value), value
        else:
            _check_fit(slot, value.shape, _name_of(slot, value.dtype))
            _check_native(slot, value.dtype)
        return _in_place(slot, value, address_of(value), not value.flags.writeable), value
    tensor = _tensor_of(slot, value)
    _check_fit(slot, tensor.shape, tensor.dtype)
    try:
        address = tensor.data_address
    except HostViewError as error:
        raise ZeroCopyError(f"{slot}: {error}") from error
    if slot.is_input:
        warn_if_slow(tensor.storage, lambda: f"{slot}, used in place,")
    return _in_place(slot, tensor, address, tensor.readonly), tensor


def needs_barriers(value: object) -> bool:
    """Returns whether code of the host must use the memory of ``value`` between cache barriers.

    True for an array of a board's own library (such as PYNQ's) and for a Tensor, in memory that a device accesses
    without seeing the host's caches. False for a plain array over such memory: whoever made it calls the barriers.
    """
    if isinstance(value, np.ndarray):
        return type(value) is not np.ndarray and barriers_of_array(value) is not None
    return isinstance(value, Tensor) and bool(value.storage.domains()[0])


def as_array(slot: Slot, value: Any) -> Array:
    """Returns ``value`` (an array, Tensor, DLPack producer, number or nested list) as an array that fits ``slot``.

    The array may have any strides, and may be over ``value``'s own memory. Raises InputError when shape or dtype
    differ.
    """
    if isinstance(value, np.ndarray):
        array = value
    elif isinstance(value, Tensor) or hasattr(value, "__dlpack__"):
        array = np.asarray(value if isinstance(value, Tensor) else _from_producer(slot, value))
    else:
        found = array_of_buffer(slot, value, slot.shape, slot.dtype)
        array = array_like(slot, value) if found is None else found
    _check_fit(slot, array.shape, _name_of(slot, array.dtype))
    return array


def as_memory(subject: object, value: Any, shape: Sequence[Extent], dtype: np.dtype[Any]) -> Any:
    """Returns ``value``; an object that has Python's buffer protocol alone is an array over its memory.

    ``shape`` and ``dtype`` are those of the tensor that it is given for. Raises InputError as ``array_of_buffer`` does.
    """
    if isinstance(value, np.ndarray | Tensor | ByValue) or hasattr(value, "__dlpack__"):
        return value
    found = array_of_buffer(subject, value, shape, dtype)
    return value if found is None else found


def array_like(subject: object, value: Any) -> Array:
    """Returns ``value``, a number or a nested list, as an array; raises InputError for ``subject`` where that is
    impossible.
    """
    try:
        return np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InputError(f"{subject}: numpy makes no array of it: {error}") from error


def as_tensor(slot: Slot, value: Any) -> Tensor:
    """Returns ``value`` as a Tensor that fits ``slot``, on any device; for other values as ``as_array``."""
    if isinstance(value, Tensor):
        _check_fit(slot, value.shape, value.dtype)
        return value
    array = as_array(slot, value)
    return Tensor.from_numpy_view(array if array.dtype.isnative else array.astype(slot.dtype))


def _on_device(slot: Slot, binding: DeviceBinding, value: Any) -> tuple[int, object]:
    """Returns what ``borrow`` does, for a slot that only a device accesses and code of the host does not."""
    scope = f", scope={binding.kind.scope!r}" if binding.is_other_device else ""
    way_out = f"pass tensor.to_device({str(binding.device)!r}{scope})"
    if slot.is_input:
        way_out += ", or let set_input copy it"
    value = _imported(slot, binding, value) if slot.for_kernels else value
    if not isinstance(value, Tensor):
        raise ZeroCopyError(f"{slot}: a {type(value).__name__} is not in {binding}; {way_out}")
    _check_fit(slot, value.shape, value.dtype)
    if value.device != binding.device or (value.scope != binding.kind.scope and not slot.for_kernels):
        raise ZeroCopyError(f"{slot}: {value!r} is not in {binding}; {way_out}")
    if slot.for_kernels:
        _check_for_kernels(slot, binding, value, way_out)
    elif binding.is_other_device:
        _check_layout(slot, value)
    if value.readonly and not slot.is_input:
        raise ZeroCopyError(f"{slot}: {value!r} is read-only, the run would write it; pass a new tensor")
    try:
        value.storage.check_file()
    except HostViewError as error:
        raise ZeroCopyError(f"{slot}: {error}") from error
    return slot.location(value), value


def _imported(slot: Slot, binding: DeviceBinding, value: Any) -> Any:
    """Returns ``value`` on the device: imported where it is host memory that the device can use in place."""
    if not isinstance(value, Tensor):
        if not isinstance(value, np.ndarray) and not hasattr(value, "__dlpack__"):
            return value
        value = _tensor_of(slot, value)
    if (
        value.device == binding.device
        or not is_host_memory(value.storage)
        or binding.device.capability(MemoryImport) is None
    ):
        return value
    _check_fit(slot, value.shape, value.dtype)
    try:
        return import_tensor(value, binding.device, writes=not slot.is_input)
    except (ZeroCopyError, HostViewError) as error:
        raise ZeroCopyError(f"{slot}: {error}") from error


def _check_for_kernels(slot: Slot, binding: DeviceBinding, value: Tensor, way_out: str) -> None:
    _check_layout(slot, value)
    if (problem := unreachable(value.storage, *value.byte_range)) is not None:
        raise ZeroCopyError(f"{slot}: {value!r}: {problem}; {way_out}")
    start = value.storage.live_region.byte_offset + value.byte_offset
    alignment = value.storage.kind.offset_alignment
    if start % alignment and value.device.capability(Addresses) is None:
        raise ZeroCopyError(
            f"{slot}: {value!r} begins at byte {start} of its memory, and kernels of {binding.device} take multiples "
            f"of {alignment}; {way_out}"
        )


def _check_layout(slot: Slot, value: Array | Tensor) -> None:
    if not slot.nbytes or slot.fits_layout(value):
        return
    steps, size = (value.strides, 1) if isinstance(value, Tensor) else (value.strides, value.itemsize)
    if slot.strides is not None:
        raise ZeroCopyError(
            f"{slot}: its strides are {_in_elements(steps, size)} elements, the program reads frames with strides "
            f"{slot.strides}; let set_input copy it, or compile with its strides in an InputSpec"
        )
    raise not_contiguous(slot, steps, size, is_input=slot.is_input)


def not_contiguous(subject: object, strides: tuple[int, ...], size: int, *, is_input: bool) -> ZeroCopyError:
    """Returns the error for memory with ``strides``, in units where an element takes ``size``, that must be dense."""
    way_out = "pass a new array"
    if is_input:
        way_out = "pass np.ascontiguousarray(...), let set_input copy it, or compile with its strides in an InputSpec"
    return ZeroCopyError(
        f"{subject}: the memory is not C-contiguous, its strides are {_in_elements(strides, size)} elements; {way_out}"
    )


def _in_elements(strides: tuple[int, ...], size: int) -> str:
    return f"({', '.join(f'{step / size:g}' for step in strides)})"


def _in_place(slot: Slot, value: Array | Tensor, address: int, readonly: bool) -> int:
    _check_layout(slot, value)
    way_out = "pass np.ascontiguousarray(...), or let set_input copy it" if slot.is_input else "pass a new array"
    if readonly and not slot.is_input:
        raise ZeroCopyError(f"{slot}: the memory is read-only, the run would write it; {way_out}")
    if address % (itemsize := slot.dtype.itemsize):
        raise ZeroCopyError(
            f"{slot}: address {address:#x} is not aligned to the {itemsize} bytes of {slot.spec.dtype}; {way_out}"
        )
    return address


def _tensor_of(slot: Slot, value: Any) -> Tensor:
    """Returns a Tensor over the memory of ``value``, an array, Tensor or producer."""
    if isinstance(value, Tensor):
        return value
    if not isinstance(value, np.ndarray):
        return _from_producer(slot, value)
    _check_fit(slot, value.shape, _name_of(slot, value.dtype))
    _check_native(slot, value.dtype)
    return Tensor.from_numpy_view(value)


def _from_producer(slot: Slot, value: Any) -> Tensor:
    if not hasattr(value, "__dlpack__"):
        raise not_in_memory(slot, value, slot.spec.dtype)
    try:
        return from_dlpack(value, copy=False)
    except LandbridgeError:
        raise
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ZeroCopyError(f"{slot}: its producer does not export it ({error}); pass a numpy array") from error


def not_in_memory(subject: object, value: object, dtype: str) -> InputError:
    """Returns the error for a ``value`` without memory of its own, where that is to be used in place."""
    return InputError(
        f"{subject}: a {type(value).__name__} cannot be bound by reference; pass a numpy array of {dtype}, a Tensor or "
        "another object with __dlpack__ or the buffer protocol"
    )


def _name_of(slot: Slot, dtype: np.dtype[Any]) -> str:
    return name_of(slot, dtype, slot.spec.dtype)


def name_of(subject: object, dtype: np.dtype[Any], wanted: str) -> str:
    """Returns our name of ``dtype``; raises InputError where no tensor has it."""
    try:
        return dtype_name(dtype)
    except (InputError, TypeError):
        raise InputError(f"{subject}: dtype {dtype} is none of a tensor's; it takes {wanted}") from None


def _check_native(slot: Slot, dtype: np.dtype[Any]) -> None:
    if not dtype.isnative:
        raise ZeroCopyError(f"{slot}: the bytes are in the other order; pass array.astype({slot.spec.dtype!r})")


def _check_fit(slot: Slot, shape: tuple[int, ...], dtype: str) -> None:
    if len(shape) != len(slot.shape):
        raise InputError(f"{slot}: rank {len(shape)} (shape {shape}), it takes rank {len(slot.shape)}, {slot.shape}")
    if tuple(shape) != slot.shape:
        raise InputError(f"{slot}: shape {shape}, it takes {slot.shape}; compile with other shapes= for another one")
    check_dtype(slot, dtype, slot.spec.dtype)


def check_dtype(subject: object, found: str, wanted: str) -> None:
    """Raises InputError unless the dtypes ``found`` and ``wanted`` are the same."""
    if found != wanted:
        raise InputError(
            f"{subject}: dtype {found}, it takes {wanted}; nothing is cast silently, pass array.astype({wanted!r})"
        )
