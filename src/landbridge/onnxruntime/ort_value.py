"""OrtValue: onnxruntime's type of a value, here always in memory of the host."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from landbridge.array_type import Array
from landbridge.onnxruntime.capi.onnxruntime_pybind11_state import Fail
from landbridge.onnxruntime.element_types import element_name, element_of, numpy_element
from landbridge.onnxruntime.memory_info import check_device
from landbridge.onnxruntime.sparse_tensor import SparseFormError, SparseTensor


class OrtValue:
    """A tensor in host memory, or a SparseTensor; made by its static methods and by runs."""

    def __init__(self, value: Array | SparseTensor) -> None:
        self._value = value

    @property
    def _array(self) -> Array:
        if isinstance(self._value, SparseTensor):
            raise SparseFormError(
                "this OrtValue is a sparse tensor; programs here take and give dense ones: put its values into "
                "np.zeros(dense_shape) at their indices, and give that"
            )
        return self._value

    @property
    def _ortvalue(self) -> OrtValue:
        """Returns itself: programs that pass values to onnxruntime's C++ API read this property."""
        return self

    @staticmethod
    def ort_value_from_sparse_tensor(sparse_tensor: SparseTensor) -> OrtValue:
        """Returns an OrtValue that holds ``sparse_tensor``."""
        return OrtValue(sparse_tensor)

    def as_sparse_tensor(self) -> SparseTensor:
        """Returns the SparseTensor that it holds; raises Fail where it is dense."""
        if not isinstance(self._value, SparseTensor):
            raise Fail("this OrtValue is a dense tensor; use numpy()")
        return self._value

    @staticmethod
    def ortvalue_from_numpy(numpy_obj: Array, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        """Returns an OrtValue on the memory of ``numpy_obj``, in place where it is C-contiguous; raises Fail for
        another device.
        """
        check_device(device_type, device_id)
        return OrtValue(np.ascontiguousarray(numpy_obj))

    @staticmethod
    def ortvalue_from_numpy_with_onnx_type(data: Array, onnx_element_type: int) -> OrtValue:
        """Returns an OrtValue on the memory of ``data``, with elements of ONNX type ``onnx_element_type`` and the same
        size, for dtypes that numpy lacks. Raises Fail for elements of another size.
        """
        dtype = numpy_element(onnx_element_type)
        if dtype.itemsize != data.dtype.itemsize:
            raise Fail(f"elements of {data.dtype} have {data.dtype.itemsize} bytes, those of {dtype} {dtype.itemsize}")
        return OrtValue(np.ascontiguousarray(data).view(dtype))

    @staticmethod
    def ortvalue_from_shape_and_type(
        shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0
    ) -> OrtValue:
        """Returns an OrtValue in new, uninitialized memory; ``element_type`` is numpy's or ONNX's. Raises Fail for
        another device.
        """
        check_device(device_type, device_id)
        dtype = numpy_element(element_of(element_type))
        return OrtValue(np.empty(tuple(shape), dtype))

    @staticmethod
    def from_dlpack(data: Any, is_bool_tensor: bool = False) -> OrtValue:
        """Returns an OrtValue on the memory of another library's array, or of a DLPack capsule, which it consumes.

        Raises Fail for other objects, and for memory that numpy cannot access.
        """
        is_capsule = type(data).__name__ == "PyCapsule"
        if not is_capsule and not hasattr(data, "__dlpack__"):
            raise Fail(f"a {type(data).__name__} has no __dlpack__ and is no DLPack capsule; give an array")
        try:
            array = np.from_dlpack(_OfHost(data) if is_capsule else data)
        except (BufferError, ValueError, RuntimeError, TypeError) as error:
            raise Fail(f"numpy cannot use what DLPack gives: {error}") from error
        return OrtValue(array.view(bool) if is_bool_tensor else array)

    def __dlpack__(self, **options: Any) -> Any:
        """Returns a DLPack capsule of the memory."""
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Returns the DLPack device of the CPU."""
        device, index = self._array.__dlpack_device__()
        return int(device), int(index)

    def numpy(self) -> Array:
        """Returns the array itself, not a copy; raises SparseFormError, a RuntimeError, for a sparse tensor."""
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Returns the array itself, unless numpy requests another dtype or a copy."""
        return np.array(self._array, dtype, copy=bool(copy)) if copy else np.asarray(self._array, dtype)

    def shape(self) -> list[int]:
        """Returns its extents."""
        return self._value.dense_shape() if isinstance(self._value, SparseTensor) else list(self._value.shape)

    def data_type(self) -> str:
        """Returns its type as a name, such as ``tensor(float)``."""
        if isinstance(self._value, SparseTensor):
            return self._value.data_type()
        return f"tensor({element_name(self.element_type())})"

    def element_type(self) -> int:
        """Returns the ONNX type of its elements."""
        return element_of(self._array.dtype)

    def data_ptr(self) -> int:
        """Returns the address of its first element."""
        return int(self._array.ctypes.data)

    def tensor_size_in_bytes(self) -> int:
        """Returns its size in bytes."""
        return int(self._array.nbytes)

    def device_name(self) -> str:
        """Returns ``"cpu"``."""
        return "cpu"

    def has_value(self) -> bool:
        """Returns True, as it always has memory."""
        return True

    def is_tensor(self) -> bool:
        """Returns whether it is dense."""
        return not self.is_sparse_tensor()

    def is_sparse_tensor(self) -> bool:
        """Returns whether it is a SparseTensor."""
        return isinstance(self._value, SparseTensor)

    def is_tensor_sequence(self) -> bool:
        """Returns False."""
        return False

    def update_inplace(self, np_arr: Array) -> None:
        """Copies ``np_arr`` into the memory; raises Fail where shape or dtype differ."""
        if np_arr.shape != self._array.shape or np_arr.dtype != self._array.dtype:
            raise Fail(f"{np_arr.dtype}{list(np_arr.shape)} does not fit {self._array.dtype}{self.shape()}")
        np.copyto(self._array, np_arr)


class _OfHost:
    """A DLPack exporter of host memory in the form that numpy takes."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def array_at(address: int, shape: Sequence[int], element_type: Any) -> Array:
    """Returns an array on memory of the caller, who keeps it alive."""
    dtype = numpy_element(element_of(element_type))
    nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    buffer = memoryview((ctypes.c_uint8 * nbytes).from_address(address)).cast("B")
    return np.frombuffer(buffer, dtype).reshape(tuple(shape)) if nbytes else np.empty(tuple(shape), dtype)
