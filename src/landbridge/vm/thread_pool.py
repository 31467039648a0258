"""Thread pools of the process: one per number of threads, run by the runtime of the first image loaded.

Workers are native threads. At exit no run is let in any more and the workers are joined before any code goes away;
after fork they are gone, and the child makes new pools.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial
from threading import RLock
from typing import Any, Protocol

from landbridge.device.lifecycle import leave_open_at_exit
from landbridge.errors import BindError, OutOfMemoryError, ThreadCountWarning
from landbridge.executable.abi import POOL_CREATE_SYMBOL, POOL_DESTROY_SYMBOL, RUN_SYMBOL
from landbridge.locks import new_lock
from landbridge.records import record
from landbridge.usable_cores import usable_cores
from landbridge.vm.code_image import LoadedImage
from landbridge.vm.turn import Turns
from landbridge.warning_notes import warn

_RUN = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)

#: Seconds that exit waits for runs of other threads; the code, memory and pool of a longer one are left to the system.
_EXIT_PATIENCE = 1.0


#: Runs records: called with the address of the first and their count.
RunNative = Callable[..., object]


class Runner(Protocol):
    """What executes code and keeps that code and its memory. It may be collected at any time."""

    @property
    def entry(self) -> Turns:
        """Whose turn everybody has who executes it."""


@record
class _Process:
    """What this process has: the image whose runtime serves it, its pools by number of threads, and who runs."""

    image: LoadedImage | None = None
    pools: dict[int, int] = field(default_factory=dict)
    runners: weakref.WeakSet[Any] = field(default_factory=weakref.WeakSet)
    lock: RLock = field(default_factory=new_lock)
    exiting: bool = False


_process = _Process()


def is_exiting() -> bool:
    """Whether the process is past the point where runs are let in."""
    return _process.exiting


def runtime_address(image: LoadedImage) -> int:
    """The address of ``landbridge_run_v2`` of this process; ``image`` serves it when it is the first."""
    with _process.lock:
        if _process.image is None:
            for symbol in (RUN_SYMBOL, POOL_CREATE_SYMBOL, POOL_DESTROY_SYMBOL):
                if symbol not in image:
                    raise BindError(f"the code image has no runtime ({symbol}); compile the model again")
            _process.image = image
    return _process.image.address(RUN_SYMBOL)


def pool_address(image: LoadedImage, threads: int) -> int:
    """The pool of ``threads`` threads, the caller counted; 0 for one thread, which needs none.

    Whoever runs on it enters itself with ``stop_at_exit``. Raises OutOfMemoryError when the system gives no more
    threads.
    """
    if threads == 1:
        return 0
    runtime_address(image)
    with _process.lock:
        address = _process.pools.get(threads, 0)
        if not address:
            create = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(_symbol(POOL_CREATE_SYMBOL))
            # Made and noted by one call, for exit to join it whatever interrupts this thread.
            _process.pools.update(zip((threads,), map(create, (threads,)), strict=True))
            address = _process.pools[threads] or 0
            if not address:
                del _process.pools[threads]
                raise OutOfMemoryError(f"the system gave no pool of {threads} threads; ask for fewer (num_threads=)")
    return address


def native_runner(images: Sequence[LoadedImage], threads: int) -> RunNative:
    """What runs records on ``threads`` threads; a program without ``images`` has none to run.

    Raises as ``pool_address``.
    """
    if not images:
        return lambda address, count: None
    function, pool = _RUN(runtime_address(images[0])), pool_address(images[0], threads)
    return partial(function, ctypes.c_void_p(pool))


def stop_at_exit(runner: Runner) -> None:
    """At exit, take the turn of ``runner`` for good before any code goes away; one that is in a run then is kept."""
    with _process.lock:
        _process.runners.add(runner)


def thread_count(asked: int | None) -> int:
    """Threads for who asks for ``asked``, None for all: no more than this process may use cores.

    Threads without a core of their own wait for each other, and a run on them takes many times as long. A
    ThreadCountWarning says when there are fewer than asked for.
    """
    if asked == 1:
        return 1
    cores = usable_cores()
    if asked is None or asked <= cores:
        return cores if asked is None else asked
    warn(
        f"num_threads is {asked}, and this process may use {cores} core{'s' * (cores > 1)}: it gets as many threads, "
        "for more would only wait for each other; ask for fewer, or give the process more cores",
        ThreadCountWarning,
    )
    return cores


def _symbol(name: str) -> int:
    if _process.image is None:
        raise BindError("no code image is loaded; load one before its thread pool")
    return _process.image.address(name)


def _stop() -> None:
    """At exit: let no run in, and join every worker unless another thread is still in a run."""
    _process.exiting = True
    deadline = time.monotonic() + _EXIT_PATIENCE
    still = [r for r in list(_process.runners) if not r.entry.take_for_good(max(0.0, deadline - time.monotonic()))]
    if still:
        leave_open_at_exit()
    for kept in (*still, *([_process.image] if still else [])):
        # Its code and memory must stay until the process ends.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
    if _process.pools and not still:
        destroy = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_symbol(POOL_DESTROY_SYMBOL))
        while _process.pools:
            destroy(_process.pools.popitem()[1])


def _drop_after_fork() -> None:
    """In a child: the workers are the parent's, so the pools are no more than its memory."""
    _process.pools.clear()
    _process.runners = weakref.WeakSet()


atexit.register(_stop)
os.register_at_fork(after_in_child=_drop_after_fork)
