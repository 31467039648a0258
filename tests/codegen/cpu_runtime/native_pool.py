"""The thread pool of CPU images, called as images are, with a clock and futexes that a test can hold up.

Everything the native code asks of the system goes through Python: so each order of events that its waits are there for
can be made, however rare it is.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest import mock

from landbridge.codegen.cpu_runtime.runtime_ir import runtime_ir
from landbridge.codegen.link import link_objects
from landbridge.codegen.llvm.compile import compile_ir
from landbridge.codegen.llvm.machine import Machine
from landbridge.executable import abi
from landbridge.executable.parts import CodeImage
from landbridge.vm import code_image

#: Of the kernel that a test hands in: (first task, task after the last).
Kernel = Callable[[int, int], object]

#: Seconds until what never comes is taken to be missing.
PATIENCE = 20.0

_FUTEX_WAIT, _FUTEX_WAKE = 128, 129
_libc = ctypes.CDLL(None)
_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_SYSCALL = ctypes.CFUNCTYPE(
    ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_long, ctypes.c_long, ctypes.c_void_p
)
_CLOCK = ctypes.CFUNCTYPE(ctypes.c_int64)
_PTHREAD_CREATE = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)


class System:
    """What the pool's calls of the system do; a test replaces what it wants to hold up."""

    def clock(self) -> int:
        """Nanoseconds."""
        return time.perf_counter_ns()

    def before_sleep(self) -> None:
        """A thread is about to sleep until it is woken."""

    def after_wake(self) -> None:
        """A thread has woken others."""

    def refuses_thread(self) -> bool:
        """Whether no more threads are given."""
        return False

    def functions(self) -> dict[str, Any]:
        """By the names that the runtime imports."""

        def syscall(number: int, word: int, operation: int, value: int, timeout: int | None) -> int:
            if operation == _FUTEX_WAIT:
                self.before_sleep()
            result: int = _SYSCALL(("syscall", _libc))(number, word, operation, value, timeout)
            if operation == _FUTEX_WAKE:
                self.after_wake()
            return result

        def pthread_create(*arguments: int) -> int:
            if self.refuses_thread():
                return 11  # EAGAIN
            return int(_PTHREAD_CREATE(("pthread_create", _libc))(*arguments))

        return {
            "syscall": _SYSCALL(syscall),
            "clock": _CLOCK(lambda: self.clock()),
            "pthread_create": _PTHREAD_CREATE(pthread_create),
        }


class Pool:
    """A pool of ``threads`` threads, the caller counted."""

    def __init__(self, threads: int, system: System) -> None:
        functions = system.functions()
        known = code_image._library_function

        def find(symbol: str, more: tuple[str, ...]) -> int:
            ours = functions.get(symbol)
            return known(symbol, more) if ours is None else ctypes.cast(ours, ctypes.c_void_p).value or 0

        with mock.patch.object(code_image, "_library_function", find):
            self._image = code_image.load_image(_image())
        # For ever: a test that fails leaves threads behind.
        _retained.append((functions, self._image))
        create = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
            self._image.address(abi.POOL_CREATE_SYMBOL)
        )
        self._destroy = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._image.address(abi.POOL_DESTROY_SYMBOL))
        self._run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(
            self._image.address(abi.RUN_SYMBOL)
        )
        #: 0 when the system gave none.
        self.address: int = create(threads, 0) or 0

    def run(self, *calls: tuple[Kernel, int]) -> None:
        """Run each kernel on so many tasks, one kernel after another."""
        kernels = [_KERNEL(lambda _, begin, end, kernel=kernel: kernel(begin, end)) for kernel, _ in calls]
        words = [
            word
            for kernel, (_, tasks) in zip(kernels, calls, strict=True)
            for word in (0, ctypes.cast(kernel, ctypes.c_void_p).value or 0, 0, tasks)
        ]
        records = (ctypes.c_int64 * len(words))(*words)
        _retained.append((kernels, records))
        self._run(self.address, None, records, len(calls))

    def destroy(self) -> None:
        """Returns when the threads have ended."""
        self._destroy(self.address)


_retained: list[Any] = []


@cache
def _linked() -> CodeImage:
    # what reads the processor's counter asks us instead
    text = runtime_ir("x86_64").replace("@llvm.readcyclecounter()", "@clock()")
    linked = link_objects([compile_ir(text, Machine("x86_64-unknown-linux-gnu", "x86-64", ""))])
    return CodeImage("x86_64", linked.code, linked.symbols, linked.imports, linked.relocations, ("sse2",))


def _image() -> CodeImage:
    """One of its own, as an image is loaded once and each test has its own System."""
    of = _linked()
    return CodeImage(of.isa, of.code, of.symbols, of.imports, of.relocations, of.features)


@contextmanager
def doing(action: Callable[[], object]) -> Iterator[threading.Event]:
    """``action`` begun in a thread; the event is set when it is over, which the end of the context waits for."""
    over = threading.Event()
    errors: list[BaseException] = []

    def act() -> None:
        try:
            action()
        except BaseException as error:
            errors.append(error)
        over.set()

    threading.Thread(target=act, daemon=True).start()
    yield over
    assert over.wait(PATIENCE), "a call of the pool never returns"
    if errors:
        raise errors[0]


def within_patience(action: Callable[[], object]) -> None:
    """Do ``action``; fails when it never returns."""
    with doing(action):
        pass
