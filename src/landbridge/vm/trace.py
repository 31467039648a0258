"""Trace: runs a program record by record, with the time of each kernel and host step, and the memory in use.

It is for finding where time goes: the memory and the kernels are those of a Session's run, but every kernel is a native
call of its own, which costs some microseconds between them.
"""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from landbridge.device.api import Device, Event
from landbridge.executable.abi import RECORD_BRANCH_IF_ZERO, RECORD_CALLS, RECORD_WORDS
from landbridge.executable.bound_sizes import sizes_of_inputs
from landbridge.executable.device_image import Launch
from landbridge.executable.executable import Executable
from landbridge.executable.instance import ExtentValues, instance
from landbridge.executable.instructions import Call, flattened, storages
from landbridge.executable.parts import CodeImage
from landbridge.tensor import Tensor
from landbridge.vm.bound_program import BoundProgram
from landbridge.vm.builtins import Builtin
from landbridge.vm.device_binding import bind_devices
from landbridge.vm.device_lane import DeviceLane
from landbridge.vm.entry import Entry
from landbridge.vm.interpreter import run_steps
from landbridge.vm.kernel_step import KernelStep
from landbridge.vm.live_bytes import live_bytes
from landbridge.vm.program import (
    AccessStep,
    BranchStep,
    CopyStep,
    HostStep,
    LoopStep,
    MoveStep,
    NativeStep,
    Step,
    WaitStep,
)
from landbridge.vm.program_memory import ProgramMemory
from landbridge.vm.thread_pool import thread_count
from landbridge.vm.trace_events import HOST_LANE, Trace, TraceEvent

_WORD = 8  # bytes
#: The number of empty native calls, of which the fastest gives the cost of a call.
_EMPTY_CALLS = 64


def trace_run(
    executable: Executable, device: Device | str, inputs: Mapping[str, Tensor], num_threads: int | None = None
) -> Trace:
    """Run ``executable`` twice on ``inputs``, by reference, and return the events of the second, warm run, in order.

    ``inputs`` has a Tensor for every input, of its shape and dtype; these give the sizes of a program with open
    dimensions. Raises BindError and InputError as a Session does.
    """
    return trace_runs(executable, device, inputs, num_threads)[0]


def trace_runs(
    executable: Executable,
    device: Device | str,
    inputs: Mapping[str, Tensor],
    num_threads: int | None = None,
    runs: int = 1,
) -> list[Trace]:
    """Returns the events of each of ``runs`` runs, in order, after a first one that is not recorded; else as
    ``trace_run``.

    The time of an empty native call is subtracted from each kernel of the CPU.
    """
    specs = executable.main.inputs
    elements = {spec.name: np.asarray(inputs[spec.name]).reshape(-1).tolist() for spec in specs if spec.elements}
    sizes = sizes_of_inputs(specs, {name: tensor.shape for name, tensor in inputs.items()}, elements)
    if sizes:
        executable = instance(executable, sizes, ExtentValues())
    bindings = bind_devices(executable, device, None)
    program = BoundProgram(executable, bindings, thread_count(num_threads), Entry("a trace"))
    for slot in program.runs.frame.inputs:
        program.runs.bind(slot, *program.runs.borrow(slot, inputs[slot.spec.name]))
    program.runs.complete()
    every = [i for i in flattened(executable.main.instructions) if isinstance(i, Call)]
    in_use = zip(every, _memory_in_use(executable, program.memory), strict=True)
    calls = [(call, used) for call, used in in_use if isinstance(executable.modules[call.module].image, CodeImage)]
    tracer = _Tracer(program, calls)
    with program.entry.waited_for():
        tracer.run()
        title = executable.metadata.get("model") or "a run"
        return [Trace(tracer.run(), title) for _ in range(runs)]


def _memory_in_use(executable: Executable, memory: ProgramMemory) -> list[dict[str, tuple[int, int]]]:
    """Returns for each Call the memory in use, as a TraceEvent has it."""
    planned: dict[str, int] = {}
    for storage in storages(executable.main.instructions):
        location = str(memory.binding(storage.vdevice))
        planned[location] = planned.get(location, 0) + storage.nbytes
    in_use = []
    for live in live_bytes(executable.main):
        now = dict.fromkeys(planned, 0)
        for vdevice, nbytes in live.items():
            now[str(memory.binding(vdevice))] += nbytes
        in_use.append({location: (nbytes, planned[location]) for location, nbytes in now.items()})
    return in_use


class _Tracer:
    def __init__(self, bound: BoundProgram, calls: Sequence[tuple[Call, Mapping[str, tuple[int, int]]]]) -> None:
        frame = bound.runs.frame
        self._steps, self._run_native = bound.program.steps, bound.run_native
        self._words, self._slots = frame.words, frame.slots
        self._base = frame.words.buffer_info()[0]
        found = _record_words((*bound.program.preparation, *bound.program.steps))
        records = sorted(word for word in found if frame.words[word] in RECORD_CALLS)
        order = bound.program.call_order or range(len(calls))
        self._calls = {word: calls[number] for word, number in zip(records, order, strict=True)}
        self._events: list[TraceEvent] = []
        self._lanes: dict[str, DeviceLane] = {}
        self._began = 0
        self._call_ns = self._empty_call_ns()

    def _empty_call_ns(self) -> int:
        """Returns the nanoseconds of a timed native call without records."""
        spent = []
        for _ in range(_EMPTY_CALLS):
            began = time.perf_counter_ns()
            self._run_native(self._base, 0)
            spent.append(time.perf_counter_ns() - began)
        return min(spent)

    def run(self) -> list[TraceEvent]:
        self._events, self._lanes = [], {}
        steps = [self._traced(step) for step in self._steps]
        self._began = time.perf_counter_ns()
        try:
            run_steps(steps, self._words, self._run_records, self._bound_to)
        finally:
            for lane in self._lanes.values():
                lane.close()
        return sorted(self._events, key=lambda event: event.start_us)

    def _bound_to(self, register: int) -> Any:
        return self._slots[register].owner

    def _run_records(self, address: int, count: int) -> None:
        """Run ``count`` records as the native runtime does, one at a time."""
        first = (address - self._base) // _WORD
        index = 0
        while index < count:
            word = first + index * RECORD_WORDS
            kind, operand, target, _ = self._words[word : word + RECORD_WORDS]
            if kind in RECORD_CALLS:
                call, memory = self._calls[word]
                began = time.perf_counter_ns()
                self._run_native(self._base + word * _WORD, 1)
                ended = max(began, time.perf_counter_ns() - self._call_ns)
                name = call.name or call.function
                self._record(name, "kernel", began, call.tasks, memory, ended=ended, function=call.function)
                index += 1
            elif kind == RECORD_BRANCH_IF_ZERO and ctypes.c_uint8.from_address(operand).value:
                index += 1
            else:
                index = target

    def _traced(self, step: Step) -> Step:
        """Returns ``step`` with its host functions timed; a copy between devices is part of the time around it."""
        match step:
            case HostStep(function=function):
                return step._replace(function=self._timed(function))
            case BranchStep(then=then, orelse=orelse):
                return step._replace(then=tuple(map(self._traced, then)), orelse=tuple(map(self._traced, orelse)))
            case LoopStep(body=body):
                return step._replace(body=tuple(map(self._traced, body)))
            case AccessStep(steps=steps):
                return step._replace(steps=tuple(map(self._traced, steps)))
            case KernelStep():
                return step.observed(partial(self._submitted, str(step.device)))
            case NativeStep() | CopyStep() | MoveStep() | WaitStep():
                return step

    def _submitted(self, device: str, launch: Launch, event: Event | None, began: int) -> None:
        if device not in self._lanes:
            self._lanes[device] = DeviceLane(partial(self._done, device))
        self._lanes[device].submitted(launch, event, began)

    def _done(self, device: str, launch: Launch, began: int, ended: int) -> None:
        name, groups = launch.kernel, math.prod(launch.grid)
        self._record(name, "kernel", began, groups, {}, device, ended, function=name)

    def _timed(self, function: Builtin) -> Builtin:
        def timed(*args: Any) -> None:
            began = time.perf_counter_ns()
            function(*args)
            self._record(getattr(function, "__name__", "host"), "host", began, 0, {})

        return timed

    def _record(
        self,
        name: str,
        category: str,
        began: int,
        tasks: int,
        memory: Mapping[str, tuple[int, int]],
        lane: str = HOST_LANE,
        ended: int | None = None,
        function: str = "",
    ) -> None:
        ended = time.perf_counter_ns() if ended is None else ended
        start_us, duration_us = (began - self._began) / 1e3, (ended - began) / 1e3
        self._events.append(TraceEvent(name, category, start_us, duration_us, tasks, memory, lane, function))


def _record_words(steps: Sequence[Step]) -> Iterator[int]:
    """Yields the word at which each record of ``steps`` begins."""
    for step in steps:
        if isinstance(step, NativeStep):
            yield from range(step.first, step.first + step.records * RECORD_WORDS, RECORD_WORDS)
        elif isinstance(step, BranchStep):
            yield from _record_words(step.then)
            yield from _record_words(step.orelse)
        elif isinstance(step, LoopStep):
            yield from _record_words(step.body)
        elif isinstance(step, AccessStep):
            yield from _record_words(step.steps)
