"""Memory that ends where the process may not go: an access past an operand is then a fault, not a wrong number.

``guarded`` copies an array so that its bytes end, or begin, exactly at an inaccessible page. ``GuardedRun`` runs an
Executable kernel by kernel with every operand so placed: inputs, outputs, weights, and each buffer of the plan, so
that a kernel that reads its neighbour in the arena faults as well. ``in_child`` makes a check in a worker process and
turns its death into a failure that names the case.
"""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Literal, ParamSpec, TypeVar

import numpy as np

from landbridge.executable.executable import Executable
from landbridge.executable.instructions import Call, Instruction
from tests.passes.native import NativeRun

Array = np.ndarray[Any, Any]
Side = Literal["after", "before"]
P, R = ParamSpec("P"), TypeVar("R")

SIDES: tuple[Side, Side] = ("after", "before")
#: What fills the rest of the pages: NaN as floats of every width, -1 as integers.
POISON = 0xFF
#: Seconds for a check, a hundred times what the slowest takes.
_PATIENCE = 300
_PROT_NONE = 0
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def guarded_bytes(nbytes: int, side: Side = "after") -> tuple[Array, Array]:
    """``nbytes`` bytes that end (or begin) at an inaccessible page, and the poisoned rest of their pages.

    Both are uint8 arrays over one mapping, which lives as long as one of them.
    """
    page = mmap.PAGESIZE
    size = max(-(-nbytes // page), 1) * page
    mapping = mmap.mmap(-1, size + 2 * page)
    whole = np.frombuffer(mapping, np.uint8)
    for start in (0, page + size):
        if _libc.mprotect(whole.ctypes.data + start, page, _PROT_NONE):
            raise OSError(ctypes.get_errno(), "mprotect")
    inside = whole[page : page + size]
    inside[:] = POISON
    cut = size - nbytes if side == "after" else nbytes
    return (inside[cut:], inside[:cut]) if side == "after" else (inside[:cut], inside[cut:])


def guarded(array: Array, side: Side = "after") -> Array:
    """A C-contiguous, writable copy of ``array``: one byte past its end (or before its start) is inaccessible.

    The other side is poison up to its page's edge. The array that is returned keeps its mapping alive.
    """
    memory, _ = guarded_bytes(array.nbytes, side)
    copy = memory.view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


class GuardedRun(NativeRun):
    """Runs an Executable like NativeRun, each kernel on copies of its operands that lie at inaccessible pages.

    Operands that overlap, as of a kernel that works in place, share one copy. Raises AssertionError when a kernel
    writes the poison beside an operand.
    """

    def __init__(self, exe: Executable, side: Side = "after") -> None:
        super().__init__(exe)
        self._side = side

    def step(self, i: Instruction) -> None:
        if not isinstance(i, Call):
            super().step(i)
            return
        plain = {number: self.registers[number] for number in i.args}
        copies = []
        for low, high, members in _regions(plain):
            memory, guard = guarded_bytes(high - low, self._side)
            copies.append((memory, guard, members))
            for number in members:
                start = plain[number].ctypes.data - low
                memory[start : start + plain[number].size] = plain[number]
                self.registers[number] = memory[start : start + plain[number].size]
        super().step(i)
        for _, guard, members in copies:
            assert (guard == POISON).all(), f"{i.function} wrote beside operand {[i.args.index(m) for m in members]}"
        for number, array in plain.items():
            if array.flags.writeable:
                array[:] = self.registers[number]
            else:
                assert np.array_equal(array, self.registers[number]), f"{i.function} wrote a constant"
            self.registers[number] = array


def _regions(arrays: dict[int, Array]) -> list[tuple[int, int, list[int]]]:
    """Arrays grouped where their bytes overlap: first and last address, and the group's numbers."""
    found: list[tuple[int, int, list[int]]] = []
    for number, array in sorted(arrays.items(), key=lambda item: item[1].ctypes.data):
        low = array.ctypes.data
        if found and low < found[-1][1]:
            first, last, members = found.pop()
            found.append((first, max(last, low + array.size), [*members, number]))
        else:
            found.append((low, low + array.size, [number]))
    return found


class ProcessEnded(AssertionError):
    """The process that made a check ended in it."""


class _Worker:
    """One process, started when it is first needed and again after its death."""

    def __init__(self) -> None:
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None

    def call(self, check: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """``check(*args, **kwargs)``'s result; raises AssertionError with its traceback where it raised."""
        if self._process is None or not self._process.is_alive():
            context = multiprocessing.get_context("spawn")
            self._connection, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()
        assert self._connection is not None and self._process.pid is not None
        self._connection.send((check, args, kwargs))
        if not self._connection.poll(_PATIENCE):
            os.kill(self._process.pid, signal.SIGABRT)  # which prints its stacks: what it hung in
        try:
            passed, result = self._connection.recv()
        except EOFError:
            self._process.join()
            code = self._process.exitcode or 0
            how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
            case = ", ".join([*map(repr, args), *(f"{k}={v!r}" for k, v in kwargs.items())])
            raise ProcessEnded(f"{check.__name__}({case}) ended its process: {how}") from None
        if not passed:
            raise AssertionError(result)
        return result


def _serve(connection: Connection) -> None:
    faulthandler.enable()
    while True:
        try:
            check, args, kwargs = connection.recv()
        except EOFError:
            return
        try:
            answer = (True, check(*args, **kwargs))
        except Exception:
            answer = (False, f"in the worker:\n{traceback.format_exc()}")
        connection.send(answer)


_worker = _Worker()


def in_child(check: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """``check(*args, **kwargs)`` in a worker process that serves many cases; its result, which must pickle.

    ``check`` is a function of a module. AssertionError, with the traceback, where it raises; ProcessEnded, naming the
    case and the signal, where the process ends.
    """
    result: R = _worker.call(check, args, kwargs)
    return result
