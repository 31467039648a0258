"""Trace: one run taken record by record, with the time of each kernel and host step.

Meant for finding where time goes: the run is the bound one, but every kernel pays one call from Python.
"""

from __future__ import annotations

import ctypes
import json
import time
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from landbridge.executable.abi import RECORD_BRANCH_IF_ZERO, RECORD_CALL, RECORD_WORDS
from landbridge.executable.instructions import Call, If, Instruction
from landbridge.vm.builtins import Builtin
from landbridge.vm.interpreter import RunNative, run_steps
from landbridge.vm.program import BranchStep, CopyStep, HostStep, NativeStep, Program, Step

_WORD = 8  # bytes


@dataclass(frozen=True)
class TraceEvent:
    """One kernel or host step: times in microseconds from the start of the run; ``tasks`` is 0 on the host."""

    name: str
    category: str
    start_us: float
    duration_us: float
    tasks: int = 0


def trace_run(
    program: Program, words: array[int], run_native: RunNative, instructions: Sequence[Instruction]
) -> list[TraceEvent]:
    """Run the bound ``program`` once and return what it did, in order.

    ``words`` are its instantiated and bound words, ``instructions`` those it was bound from.
    """
    return _Tracer(program, words, run_native, instructions).run()


def chrome_trace(events: Sequence[TraceEvent], process: str) -> str:
    """``events`` as JSON text in the Trace Event Format that chrome://tracing and Perfetto read."""
    named = {"name": "process_name", "ph": "M", "pid": 0, "tid": 0, "args": {"name": process}}
    complete = [
        {
            "name": event.name,
            "cat": event.category,
            "ph": "X",
            "ts": event.start_us,
            "dur": event.duration_us,
            "pid": 0,
            "tid": 0,
            "args": {"tasks": event.tasks},
        }
        for event in events
    ]
    return json.dumps({"traceEvents": [named, *complete], "displayTimeUnit": "ms"}, indent=1)


class _Tracer:
    def __init__(
        self, program: Program, words: array[int], run_native: RunNative, instructions: Sequence[Instruction]
    ) -> None:
        self._program, self._words, self._run_native = program, words, run_native
        self._base = words.buffer_info()[0]
        # Binding keeps the order of calls, so the n-th call record is the n-th Call.
        records = sorted(word for word in _record_words(program.steps) if words[word] == RECORD_CALL)
        self._calls = dict(zip(records, _calls(instructions), strict=True))
        self._events: list[TraceEvent] = []
        self._began = 0

    def run(self) -> list[TraceEvent]:
        steps = [self._traced(step) for step in self._program.steps]
        self._began = time.perf_counter_ns()
        run_steps(steps, self._words, self._run_records)
        return self._events

    def _run_records(self, address: int, count: int) -> None:
        """What the native runtime does with ``count`` records, one at a time."""
        first = (address - self._base) // _WORD
        index = 0
        while index < count:
            word = first + index * RECORD_WORDS
            kind, operand, target, _ = self._words[word : word + RECORD_WORDS]
            if kind == RECORD_CALL:
                call = self._calls[word]
                began = time.perf_counter_ns()
                self._run_native(self._base + word * _WORD, 1)
                self._record(call.name or call.function, "kernel", began, call.tasks)
                index += 1
            elif kind == RECORD_BRANCH_IF_ZERO and ctypes.c_uint8.from_address(operand).value:
                index += 1
            else:
                index = target

    def _traced(self, step: Step) -> Step:
        """``step`` with its host functions timed; a copy between devices is part of the time around it."""
        match step:
            case HostStep(function=function):
                return replace(step, function=self._timed(function))
            case BranchStep(then=then, orelse=orelse):
                return replace(step, then=tuple(map(self._traced, then)), orelse=tuple(map(self._traced, orelse)))
            case NativeStep() | CopyStep():
                return step

    def _timed(self, function: Builtin) -> Builtin:
        def timed(*args: Any) -> None:
            began = time.perf_counter_ns()
            function(*args)
            self._record(getattr(function, "__name__", "host"), "host", began, 0)

        return timed

    def _record(self, name: str, category: str, began: int, tasks: int) -> None:
        ended = time.perf_counter_ns()
        start_us, duration_us = (began - self._began) / 1e3, (ended - began) / 1e3
        self._events.append(TraceEvent(name, category, start_us, duration_us, tasks))


def _record_words(steps: Sequence[Step]) -> Iterator[int]:
    """The word at which each record of ``steps`` begins."""
    for step in steps:
        if isinstance(step, NativeStep):
            yield from range(step.first, step.first + step.count * RECORD_WORDS, RECORD_WORDS)
        elif isinstance(step, BranchStep):
            yield from _record_words(step.then)
            yield from _record_words(step.orelse)


def _calls(instructions: Sequence[Instruction]) -> Iterator[Call]:
    for instruction in instructions:
        if isinstance(instruction, Call):
            yield instruction
        elif isinstance(instruction, If):
            yield from _calls(instruction.then)
            yield from _calls(instruction.orelse)
