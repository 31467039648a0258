"""Running the steps of a Program that has more than compiled code."""

from __future__ import annotations

import ctypes
import math
from array import array
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from landbridge.dtypes import dtype, numpy_dtype
from landbridge.memory.ledger import copy_array
from landbridge.vm.program import BranchStep, CopyStep, HostStep, HostTensor, NativeStep, Step

#: Runs ``count`` records from an address.
RunNative = Callable[[int, int], object]


def run_steps(steps: Sequence[Step], words: array[int], run_native: RunNative) -> None:
    """Take ``steps`` in order on the bound ``words``; a builtin's exception ends the run and is passed on."""
    base = words.buffer_info()[0]
    for step in steps:
        match step:
            case NativeStep(first, count):
                run_native(base + first * words.itemsize, count)
            case HostStep(function, args, attributes):
                function([_array(arg, words) for arg in args], attributes)
            case CopyStep(src, dst, name, source, destination):
                copy_array(
                    _array(dst, words),
                    _array(src, words),
                    cause="to_vdevice",
                    tensor=name,
                    source=source,
                    destination=destination,
                )
            case BranchStep(condition, then, orelse):
                taken = ctypes.c_uint8.from_address(words[condition]).value
                run_steps(then if taken else orelse, words, run_native)


def _array(tensor: HostTensor, words: array[int]) -> np.ndarray[Any, Any]:
    nbytes = math.prod(tensor.shape) * dtype(tensor.dtype).itemsize
    memory = (ctypes.c_char * nbytes).from_address(words[tensor.word])
    return np.ndarray(tensor.shape, numpy_dtype(tensor.dtype), buffer=memoryview(memory))
