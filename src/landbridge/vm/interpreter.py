"""The interpreter: runs the steps of a Program that has more than compiled code."""

from __future__ import annotations

import ctypes
import math
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from landbridge.device.protocols import AccessMode
from landbridge.dtypes import dtype, numpy_dtype
from landbridge.memory import ledger
from landbridge.memory.coherence import begin_host_access, end_host_access
from landbridge.memory.storage import Storage
from landbridge.tensor import Tensor
from landbridge.tensor.copy import copy_tensor
from landbridge.vm.bound_memory import bound_bytes, is_one_memory
from landbridge.vm.flight import InFlight, give_up, wait_for
from landbridge.vm.kernel_step import BoundTo, KernelStep
from landbridge.vm.program import (
    AccessStep,
    BoundTensor,
    BranchStep,
    CopyEnd,
    CopyStep,
    HostStep,
    HostTensor,
    LoopStep,
    MoveStep,
    NativeStep,
    OwnedPart,
    Step,
    WaitStep,
)
from landbridge.vm.thread_pool import RunNative


class CopyInFlight(NamedTuple):
    """A copy that may still be queued on the storages of its ``ends``."""

    ends: tuple[Tensor, Tensor]

    def wait(self) -> None:
        """Wait until it is done: code ignores queues, so nothing may be pending on memory that it uses."""
        for tensor in self.ends:
            if tensor.storage.has_queued:
                tensor.storage.wait(*tensor.byte_range, writes=True)


def run_steps(steps: Sequence[Step], words: array[int], run_native: RunNative, bound_to: BoundTo) -> None:
    """Run ``steps`` in order on the bound ``words``; a builtin's exception ends the run and is raised.

    Devices may still work on earlier steps, where no WaitStep says otherwise; all is done when this returns.
    """
    flight: InFlight = {}
    try:
        _take(steps, words, run_native, bound_to, flight)
        wait_for(flight, tuple(flight))
    finally:
        give_up(flight)


def _take(steps: Sequence[Step], words: array[int], run_native: RunNative, bound_to: BoundTo, flight: InFlight) -> None:
    base = words.buffer_info()[0]
    for step in steps:
        match step:
            case NativeStep(first, records):
                run_native(base + first * words.itemsize, records)
            case HostStep(function, args, attributes):
                function([_array(arg, words) for arg in args], attributes)
            case CopyStep(src, dst):
                _copy(step, src, dst, words, bound_to, flight)
            case KernelStep():
                flight[step.number] = step.start(bound_to, flight.values())
            case WaitStep(ordinals):
                wait_for(flight, ordinals)
            case MoveStep(name, nbytes, device, operands, io, io_unless_same):
                if operands is not None and words[operands[0]] == words[operands[1]]:
                    continue
                if io_unless_same and is_one_memory(*map(bound_to, io)):
                    continue
                of_state = any(is_state(bound_to(register)) for register in io)
                ledger.record_kernel_moves(nbytes, tensor=name, device=device, of_state=of_state)
            case AccessStep(borrowed, inner):
                with ExitStack() as barriers:
                    for each in bound_bytes(borrowed, bound_to):
                        barriers.enter_context(_barriers(*each))
                    _take(inner, words, run_native, bound_to, flight)
            case BranchStep(condition, then, orelse):
                taken = ctypes.c_uint8.from_address(words[condition]).value
                run_steps(then if taken else orelse, words, run_native, bound_to)
            case LoopStep():
                _loop(step, words, run_native, bound_to)


def is_state(owner: object) -> bool:
    """Returns whether ``owner``, what is bound to an input or output, is memory of a state."""
    return isinstance(owner, Tensor) and owner.storage.is_state


def _loop(loop: LoopStep, words: array[int], run_native: RunNative, bound_to: BoundTo) -> None:
    trips, done = loop.trips, 0
    if loop.counter is not None:
        trips = min(trips, ctypes.c_int64.from_address(words[loop.counter]).value)
    take = _iteration(loop.body, words, run_native, bound_to)
    going = None if loop.condition is None else ctypes.c_uint8.from_address(words[loop.condition])
    try:
        while done < trips and (going is None or going.value):
            take()
            done += 1
            for word, stride in loop.moving:
                words[word] += stride
    finally:
        for word, stride in loop.moving:
            words[word] -= stride * done


def _iteration(
    body: Sequence[Step], words: array[int], run_native: RunNative, bound_to: BoundTo
) -> Callable[[], object]:
    """Returns a function that runs one iteration: the native call itself, where the body is one."""
    match body:
        case (NativeStep(first, records),):
            return partial(run_native, words.buffer_info()[0] + first * words.itemsize, records)
        case _:
            return partial(run_steps, body, words, run_native, bound_to)


@contextmanager
def _barriers(storage: Storage, start: int, stop: int, mode: AccessMode) -> Iterator[None]:
    """Call the barriers before and after the host's use of ``start <= b < stop`` of ``storage``."""
    begin_host_access(storage, start, stop, mode, in_run=True)
    try:
        yield
    finally:
        end_host_access(storage, start, stop, mode)


def _copy(step: CopyStep, src: CopyEnd, dst: CopyEnd, words: array[int], bound_to: BoundTo, flight: InFlight) -> None:
    if isinstance(src, HostTensor) and isinstance(dst, HostTensor):
        ledger.copy_array(
            _array(dst, words),
            _array(src, words),
            cause="to_vdevice",
            tensor=step.name,
            source=step.source,
            destination=step.destination,
        )
        return
    ends = _tensor(src, words, bound_to), _tensor(dst, words, bound_to)
    copy_tensor(ends[1], ends[0], cause="to_vdevice", wait=step.number is None)
    queued = CopyInFlight(ends)
    if step.number is None:
        queued.wait()
    else:
        flight[step.number] = queued


def _tensor(end: CopyEnd, words: array[int], bound_to: BoundTo) -> Tensor:
    match end:
        case HostTensor():
            return Tensor.from_numpy_view(_array(end, words))
        case BoundTensor(register, offset, shape, element):
            whole: Tensor = bound_to(register)
            if whole.axis_separators:  # no part of it is used
                return whole
            return Tensor(whole.storage, element, shape, None, whole.byte_offset + offset, readonly=whole.readonly)
        case OwnedPart():
            return end.tensor()
        case _:
            return end


def _array(tensor: HostTensor, words: array[int]) -> np.ndarray[Any, Any]:
    nbytes = math.prod(tensor.shape) * dtype(tensor.dtype).itemsize
    memory = (ctypes.c_char * nbytes).from_address(words[tensor.word])
    return np.ndarray(tensor.shape, numpy_dtype(tensor.dtype), buffer=memoryview(memory))
