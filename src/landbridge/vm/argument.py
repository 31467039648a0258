"""Arguments: the address of what a caller gives for an input or output, or the reason why it cannot be used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from landbridge.array_type import Array
from landbridge.device.api import NdSpace
from landbridge.device.protocols import Addresses, MemoryImport
from landbridge.dtypes import dtype_name, has_numpy_dtype, stored_dtype
from landbridge.errors import HostViewError, InputError, LandbridgeError, ZeroCopyError
from landbridge.executable.parts import TensorSpec
from landbridge.memory.borrowed import is_host_memory
from landbridge.memory.extents import unreachable
from landbridge.memory.host_array import address_of
from landbridge.memory.host_use import warn_if_slow
from landbridge.memory.memory_barriers import barriers_of_array
from landbridge.shapes.physical import physical_shape
from landbridge.tensor import Tensor, from_dlpack
from landbridge.tensor.borrowed_array import is_aligned
from landbridge.tensor.imported import import_tensor
from landbridge.vm.buffer_argument import array_of_buffer
from landbridge.vm.by_value import ByValue
from landbridge.vm.device_binding import DeviceBinding
from landbridge.vm.slot import Role, Slot

if TYPE_CHECKING:
    from landbridge.sizes.size import Extent


#: The way out where a weight cannot be used in place.
COPY_PARAMETER = "call set_params(..., copy=True), which copies it"


def borrow(slot: Slot, value: Any) -> tuple[int, object]:
    """Returns the address of ``value``'s own memory and the object that keeps it alive; an output's must be writable.

    Where each 100 ns counts, callers first check the common case: a plain array of the slot's dtype and shape whose
    ``flags.carray`` is set.

    Raises InputError when ``value`` does not fit ``slot``, ZeroCopyError when its memory cannot be used in place.
    """
    value = as_memory(slot, value, slot.shape, slot.dtype)
    if slot.spec.axis_separators and slot.binding is not None:
        return _in_rows(slot, slot.binding, value)
    if slot.binding is not None:
        return _on_device(slot, slot.binding, value)
    if isinstance(value, np.ndarray) and not needs_barriers(value):
        if value.dtype == slot.dtype and value.shape == slot.shape:
            if slot.strides is None and value.flags.carray:  # contiguous, aligned to its elements, writable
                return address_of(value), value
        else:
            check_fit(slot, slot.spec, value.shape, name_of(slot, value.dtype, slot.spec.dtype))
            _check_native(slot, slot.spec, value.dtype)
        return _in_place(slot, value, address_of(value), not value.flags.writeable), value
    tensor = tensor_in_place(slot, slot.spec, value)
    check_fit(slot, slot.spec, tensor.shape, tensor.dtype)
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
        array = np.asarray(value if isinstance(value, Tensor) else _from_producer(slot, slot.spec, value))
    else:
        found = array_of_buffer(slot, value, slot.shape, slot.dtype)
        array = array_like(slot, value) if found is None else found
    check_fit(slot, slot.spec, array.shape, name_of(slot, array.dtype, slot.spec.dtype))
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
    """Returns ``value`` as a Tensor that fits ``slot``, on any device; for other values as ``as_array``.

    One whose elements no Tensor can have is copied, so that what is written to the result is lost.
    """
    if isinstance(value, Tensor):
        check_fit(slot, slot.spec, value.shape, value.dtype)
        return value
    array = as_array(slot, value)
    return Tensor.from_numpy_view(array if is_of_elements(array) else array.astype(slot.dtype))


def is_of_elements(array: Array) -> bool:
    """Returns whether a Tensor can have the memory of ``array``: its elements are in this byte order, at multiples of
    their size.
    """
    return array.dtype.isnative and is_aligned(array)


def _on_device(slot: Slot, binding: DeviceBinding, value: Any) -> tuple[int, object]:
    """Returns what ``borrow`` does, for a slot that only a device accesses and code of the host does not."""
    scope = f", scope={binding.kind.scope!r}" if binding.is_other_device else ""
    way_out = f"pass tensor.to_device({str(binding.device)!r}{scope})"
    if slot.is_input:
        way_out += f", or {_by_value(slot)}"
    value = _imported(slot, binding, value) if slot.for_kernels else value
    if not isinstance(value, Tensor):
        raise ZeroCopyError(f"{slot}: a {type(value).__name__} is not in {binding}; {way_out}")
    check_fit(slot, slot.spec, value.shape, value.dtype)
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


def _in_rows(slot: Slot, binding: DeviceBinding, value: Any) -> tuple[int, object]:
    """Returns what ``borrow`` does, for a slot in rows: a Tensor that has all rows of its memory, as the program splits
    its axes.
    """
    separators = list(slot.spec.axis_separators)
    layout = f"device={str(binding.device)!r}, scope={binding.kind.scope!r}, axis_separators={separators}"
    way_out = f"pass lb.empty({slot.shape}, dtype={slot.spec.dtype!r}, {layout})"
    if slot.is_input:
        way_out += f", or {_by_value(slot)}"
    if not isinstance(value, Tensor):
        raise ZeroCopyError(f"{slot}: a {type(value).__name__} is not in {binding}; {way_out}")
    check_fit(slot, slot.spec, value.shape, value.dtype)
    if value.device != binding.device or value.scope != binding.kind.scope:
        raise ZeroCopyError(f"{slot}: {value!r} is not in {binding}; {way_out}")
    if value.axis_separators != slot.spec.axis_separators:
        raise ZeroCopyError(
            f"{slot}: the memory has axis separators {list(value.axis_separators)}, the program uses {separators}; "
            f"{way_out}"
        )
    space = value.storage.live_region.space
    whole = physical_shape(slot.shape, slot.spec.axis_separators)
    if value.byte_offset or not isinstance(space, NdSpace) or space.physical_shape != whole:
        raise ZeroCopyError(f"{slot}: {value!r} is a part of other rows; {way_out}")
    if value.readonly and not slot.is_input:
        raise ZeroCopyError(f"{slot}: {value!r} is read-only, the run would write it; pass a new tensor")
    return slot.location(value), value


def _imported(slot: Slot, binding: DeviceBinding, value: Any) -> Any:
    """Returns ``value`` on the device: imported where it is host memory that the device can use in place."""
    if not isinstance(value, Tensor):
        if not isinstance(value, np.ndarray) and not hasattr(value, "__dlpack__"):
            return value
        value = tensor_in_place(slot, slot.spec, value)
    if (
        value.device == binding.device
        or not is_host_memory(value.storage)
        or binding.device.capability(MemoryImport) is None
    ):
        return value
    check_fit(slot, slot.spec, value.shape, value.dtype)
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
    raise not_contiguous(slot, steps, size, slot.role)


def not_contiguous(subject: object, strides: tuple[int, ...], size: int, role: Role) -> ZeroCopyError:
    """Returns the error for memory with ``strides``, in units where an element takes ``size``, that must be dense."""
    way_out = "pass a new array"
    if role == "input":
        way_out = "pass np.ascontiguousarray(...), let set_input copy it, or compile with its strides in an InputSpec"
    elif role == "parameter":
        way_out = f"pass np.ascontiguousarray(...), or {COPY_PARAMETER}"
    return ZeroCopyError(
        f"{subject}: the memory is not C-contiguous, its strides are {_in_elements(strides, size)} elements; {way_out}"
    )


def _by_value(slot: Slot) -> str:
    return COPY_PARAMETER if slot.role == "parameter" else "let set_input copy it"


def _in_elements(strides: tuple[int, ...], size: int) -> str:
    return f"({', '.join(f'{step / size:g}' for step in strides)})"


def _in_place(slot: Slot, value: Array | Tensor, address: int, readonly: bool) -> int:
    _check_layout(slot, value)
    way_out = f"pass np.ascontiguousarray(...), or {_by_value(slot)}" if slot.is_input else "pass a new array"
    if readonly and not slot.is_input:
        raise ZeroCopyError(f"{slot}: the memory is read-only, the run would write it; {way_out}")
    if address % (itemsize := slot.dtype.itemsize):
        raise ZeroCopyError(
            f"{slot}: address {address:#x} is not aligned to the {itemsize} bytes of {slot.spec.dtype}; {way_out}"
        )
    return address


def tensor_in_place(subject: object, spec: TensorSpec, value: Any) -> Tensor:
    """Returns a Tensor over the memory of ``value``, an array, Tensor or producer, given for ``spec``.

    Raises InputError for an array that does not fit ``spec``, and ZeroCopyError for memory that no Tensor can be over.
    """
    if isinstance(value, Tensor):
        return value
    if not isinstance(value, np.ndarray):
        return _from_producer(subject, spec, value)
    check_fit(subject, spec, value.shape, name_of(subject, value.dtype, spec.dtype))
    _check_native(subject, spec, value.dtype)
    return Tensor.from_numpy_view(value)


def parameter_tensor(spec: TensorSpec, value: Any) -> Tensor:
    """Returns a Tensor over the memory of ``value`` that may be parameter ``spec``, on any device.

    Raises InputError where it does not fit, ZeroCopyError where a copy would be needed.
    """
    subject = f"parameter {spec.name!r}"
    memory = as_memory(subject, value, spec.shape, stored_dtype(spec.dtype))
    if isinstance(memory, np.ndarray) and not memory.flags.aligned:
        where = f"address {address_of(memory):#x} is not aligned to the {memory.itemsize} bytes of {memory.dtype}"
        raise ZeroCopyError(f"{subject}: {where}; {COPY_PARAMETER}")
    tensor = tensor_in_place(subject, spec, memory)
    check_fit(subject, spec, tensor.shape, tensor.dtype)
    if tensor.size and not tensor.is_contiguous:
        raise not_contiguous(subject, tensor.strides, 1, "parameter")
    return tensor


def _from_producer(subject: object, spec: TensorSpec, value: Any) -> Tensor:
    if not hasattr(value, "__dlpack__"):
        raise not_in_memory(subject, value, spec.dtype)
    try:
        return from_dlpack(value, copy=False)
    except LandbridgeError:
        raise
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ZeroCopyError(f"{subject}: its producer does not export it ({error}); pass a numpy array") from error


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


def _check_native(subject: object, spec: TensorSpec, dtype: np.dtype[Any]) -> None:
    if not dtype.isnative:
        raise ZeroCopyError(f"{subject}: the bytes are in the other order; pass array.astype({spec.dtype!r})")


def check_fit(subject: object, spec: TensorSpec, shape: tuple[int, ...], dtype: str) -> None:
    """Raises InputError unless ``shape`` and ``dtype`` are those of ``spec``."""
    if len(shape) != len(spec.shape):
        raise InputError(f"{subject}: rank {len(shape)} (shape {shape}), it takes rank {len(spec.shape)}, {spec.shape}")
    if tuple(shape) != spec.shape:
        raise InputError(f"{subject}: shape {shape}, it takes {spec.shape}; compile with other shapes= for another one")
    check_dtype(subject, dtype, spec.dtype)


def check_dtype(subject: object, found: str, wanted: str) -> None:
    """Raises InputError unless the dtypes ``found`` and ``wanted`` are the same."""
    if found != wanted:
        way = f"pass array.astype({wanted!r})"
        if not has_numpy_dtype(wanted):
            bits = stored_dtype(wanted)
            way = f"pass its elements' bits as bits.view({bits}), or install the package that has {wanted}: ml-dtypes"
        raise InputError(f"{subject}: dtype {found}, it takes {wanted}; nothing is cast silently, {way}")
