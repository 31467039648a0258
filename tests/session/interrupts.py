"""Interrupts of Python code at every point where the interpreter lets one in, one after another.

CPython looks for signals and asynchronous exceptions between certain instructions only: after calls, at backward jumps
and where a function begins. Here the exception is set, by C code alone, before the n-th instruction that is executed,
and so is raised at the first such point after it.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, count, repeat
from types import FrameType
from typing import Any

_NEXT = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, *[ctypes.py_object] * 3)(
    ctypes.cast(ctypes.pythonapi.PyIter_Next, ctypes.c_void_p).value  # what it is given besides the iterator is ignored
)
_SET = ctypes.PYFUNCTYPE(None, ctypes.c_ulong, ctypes.py_object)(
    ctypes.cast(ctypes.pythonapi.PyThreadState_SetAsyncExc, ctypes.c_void_p).value
)


class Interrupt(BaseException):
    """What is raised; nobody catches it by accident."""


def _traced(action: Callable[[], object], each: Callable[..., Any]) -> None:
    def begin(frame: FrameType, event: str, arg: object) -> Callable[..., Any] | None:
        if "landbridge" not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return each

    before = sys.gettrace()
    # A collection may run finalizers of Landbridge while a thread starts. An exception set there goes to the new
    # thread: until that runs, CPython has it under the number of the one that made it, which then waits forever.
    collects = gc.isenabled()
    gc.disable()
    sys.settrace(begin)
    try:
        action()
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()


def instructions(action: Callable[[], object]) -> int:
    """How many instructions of Landbridge ``action`` executes in this thread."""
    counter = count()
    _traced(action, partial(_NEXT, map(_nothing, counter)))
    return next(counter)


_nothing = {}.get  # None for everything


def interrupted(action: Callable[[], object], step: int = 1) -> Iterator[bool]:
    """Do ``action`` again and again, interrupted one place later each time; whether it was, after each."""
    last = instructions(action)
    for n in range(0, last + 1, step):
        strike = map(_SET, [threading.get_ident()], [Interrupt])
        # repeat() at the end: the tracing goes on while the exception is on its way
        each = partial(_NEXT, chain(repeat(None, n), strike, repeat(None)))
        was_interrupted = False
        try:
            _traced(action, each)
            list(repeat(None, 2))  # where one that was set at the last place of all comes
        except Interrupt:
            was_interrupted = True
        yield was_interrupted  # when the traceback is gone, and with it what its frames had
