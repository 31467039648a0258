"""Checks of arguments whose sizes are known only from the values: all that needs no sizes is checked when they are
given.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from landbridge.dtypes import stored_dtype
from landbridge.executable.parts import TensorSpec
from landbridge.memory.borrowed import host_device
from landbridge.tensor import Tensor
from landbridge.tensor.tensor import array_without_storage
from landbridge.vm.argument import array_like, as_memory, check_dtype, name_of, not_contiguous, not_in_memory
from landbridge.vm.by_value import ByValue


def array_of(value: Any) -> np.ndarray[Any, Any]:
    """Returns ``value`` as an array over its memory, or over a copy where the host cannot read it in place.

    Raises InputError for a value that numpy cannot make an array of.
    """
    if isinstance(value, ByValue):
        value = value.value
    if (owned := array_without_storage(value)) is not None:
        return owned.view()
    if isinstance(value, Tensor) and not (value.storage.kind.host_readable and value.storage.kind.coherent):
        value = value.to_device(host_device())
    if not isinstance(value, Tensor):
        return array_like("a value", value)
    # numpy takes no bfloat16 by DLPack, and raises SystemError for it
    return np.from_dlpack(cast(Any, value)) if stored_dtype(value.dtype).isbuiltin == 1 else np.asarray(value)


def memory_for(spec: TensorSpec, value: Any, *, is_input: bool = True) -> Any:
    """Returns ``value`` for ``spec``; an object with Python's buffer protocol alone is an array over its memory."""
    subject = f"{'input' if is_input else 'output'} {spec.name!r}"
    return as_memory(subject, value, spec.shape, stored_dtype(spec.dtype))


def copy_for(spec: TensorSpec, value: Any) -> np.ndarray[Any, Any]:
    """Returns a copy of ``value`` for input ``spec``; raises InputError unless it is an array of that dtype."""
    subject = f"input {spec.name!r}"
    value = memory_for(spec, value)
    array = array_of(value) if isinstance(value, Tensor | ByValue) else array_like(subject, value)
    check_dtype(subject, name_of(subject, array.dtype, spec.dtype), spec.dtype)
    return np.array(array, order="C")  # not in the order of its strides: it is bound as it is


def check_borrowed(spec: TensorSpec, value: Any) -> None:
    """Raises InputError where ``value`` is not memory of the dtype of input ``spec``.

    Raises ZeroCopyError for an array whose memory has gaps or another order, where the program reads it densely.
    """
    subject = f"input {spec.name!r}"
    given = value.value if isinstance(value, ByValue) else value
    if isinstance(given, Tensor):
        check_dtype(subject, given.dtype, spec.dtype)
    elif isinstance(given, np.ndarray):
        check_dtype(subject, name_of(subject, given.dtype, spec.dtype), spec.dtype)
        if type(given) is np.ndarray and value is given and not spec.strides and not given.flags.c_contiguous:
            raise not_contiguous(subject, given.strides, given.itemsize, "input")
    elif not hasattr(given, "__dlpack__"):
        raise not_in_memory(subject, given, spec.dtype)


def argument(value: Any) -> Any:
    """Returns ``value`` as one piece of a program passes it to another: an array that any program can use, or a
    copy.
    """
    array = value if type(value) is np.ndarray else array_without_storage(value)
    return ByValue(value, "pieces") if array is None or not array.flags.carray else array
