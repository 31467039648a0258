"""Thread pools of the process: one for each number of threads, run by the runtime of the first image of a version.

Workers are native threads. At exit no further run starts, and the workers are joined before any code goes away; after
fork they do not exist, and the child makes new pools.
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
from landbridge.executable.abi import (
    POOL_CREATE_SYMBOL,
    POOL_DESTROY_SYMBOL,
    RUN_SYMBOL,
    STACK_POOL_CREATE_SYMBOL,
    STACK_RUN_SYMBOL,
    WORKSPACE_BYTES,
)
from landbridge.process.locks import new_lock
from landbridge.process.usable_cores import usable_cores
from landbridge.records import record
from landbridge.reporting.warning_notes import warn
from landbridge.vm.code_image import LoadedImage
from landbridge.vm.token_lock import TokenLock
from landbridge.vm.workspace import Workspace

_RUN = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
_STACK_RUN = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
_CREATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_STACK_CREATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)

#: Seconds that exit waits for runs of other threads; code, memory and pool of a longer one are left to the system.
_EXIT_PATIENCE = 1.0


#: A function that runs records, given the address of the first and their count.
RunNative = Callable[..., object]


class Runner(Protocol):
    """An object that executes code and keeps that code and its memory alive; ``stop_at_exit`` takes it.

    Only a weak reference to it is kept, so it may be collected at any time before exit.
    """

    @property
    def entry(self) -> TokenLock:
        """Returns the lock that all who execute it hold."""


@record
class _Runtime:
    """The runtime that serves all images of one version of the native interface: the first of them, with its pools.

    Pools are by number of threads. ``run`` and ``create`` are names of its functions; ``has_workspaces``: whether these
    take workspaces.
    """

    run: str
    create: str
    has_workspaces: bool
    image: LoadedImage | None = None
    pools: dict[int, int] = field(default_factory=dict)

    def address(self, symbol: str) -> int:
        """Returns the address of its ``symbol``."""
        if self.image is None:
            raise BindError("no code image is loaded; load one before its thread pool")
        return self.image.address(symbol)

    def new_pool(self, threads: int) -> int:
        """Returns the address of a new pool; 0 where the system cannot make one."""
        address = self.address(self.create)
        created = _CREATE(address)(threads, WORKSPACE_BYTES) if self.has_workspaces else _STACK_CREATE(address)(threads)
        return int(created or 0)


@record
class _Process:
    """The state of this process: runtimes, the newest first, and the runners."""

    runtimes: tuple[_Runtime, ...] = field(
        default_factory=lambda: (
            _Runtime(RUN_SYMBOL, POOL_CREATE_SYMBOL, has_workspaces=True),
            _Runtime(STACK_RUN_SYMBOL, STACK_POOL_CREATE_SYMBOL, has_workspaces=False),
        )
    )
    runners: weakref.WeakSet[Any] = field(default_factory=weakref.WeakSet)
    lock: RLock = field(default_factory=new_lock)
    exiting: bool = False


_process = _Process()


def is_exiting() -> bool:
    """Returns whether the process has begun to exit, so that no run may start."""
    return _process.exiting


def _runtime_of(image: LoadedImage) -> _Runtime:
    """Returns the runtime for ``image``'s version of the native interface. The first image of a version becomes that of
    its runtime; raises BindError where it lacks the runtime's functions.
    """
    runtime = next((each for each in _process.runtimes if each.run in image), _process.runtimes[0])
    with _process.lock:
        if runtime.image is None:
            for symbol in (runtime.run, runtime.create, POOL_DESTROY_SYMBOL):
                if symbol not in image:
                    raise BindError(f"the code image has no runtime ({symbol}); compile the model again")
            runtime.image = image
    return runtime


def pool_address(image: LoadedImage, threads: int) -> int:
    """Returns the pool of ``threads`` threads, the caller included; 0 for one thread, which needs none.

    Whoever runs on it registers itself with ``stop_at_exit``. Raises OutOfMemoryError when the system gives no more
    threads.
    """
    if threads == 1:
        return 0
    runtime = _runtime_of(image)
    with _process.lock:
        address = runtime.pools.get(threads, 0)
        if not address:
            # Made and recorded by one call, so that exit joins it whatever interrupts this thread.
            runtime.pools.update(zip((threads,), map(runtime.new_pool, (threads,)), strict=True))
            address = runtime.pools[threads]
            if not address:
                del runtime.pools[threads]
                raise OutOfMemoryError(f"the system gave no pool of {threads} threads; ask for fewer (num_threads=)")
    return address


def native_runner(images: Sequence[LoadedImage], threads: int, workspace: Workspace) -> RunNative:
    """Returns a function that runs records on ``threads`` threads; a program without ``images`` has none to run.

    ``workspace`` is for temporaries of kernels on the calling thread: no two runs at the same time may share one.
    Raises as ``pool_address``.
    """
    if not images:
        return lambda address, count: None
    runtime, pool = _runtime_of(images[0]), pool_address(images[0], threads)
    address = runtime.address(runtime.run)
    if not runtime.has_workspaces:
        return partial(_STACK_RUN(address), ctypes.c_void_p(pool))
    return partial(_RUN(address), ctypes.c_void_p(pool), workspace)


def stop_at_exit(runner: Runner) -> None:
    """Register ``runner``, so that exit takes its lock for good before any code is unloaded. One whose run is not over
    by then stays in memory, with its code, until the process ends.
    """
    with _process.lock:
        _process.runners.add(runner)


def thread_count(requested: int | None) -> int:
    """Returns the threads for ``requested`` (None: all): no more than the cores that this process may use.

    Threads without a core of their own wait for each other, and a run on them takes many times as long. A
    ThreadCountWarning says when there are fewer than requested.
    """
    if requested == 1:
        return 1
    cores = usable_cores()
    if requested is None or requested <= cores:
        return cores if requested is None else requested
    warn(
        f"num_threads is {requested}, and this process may use {cores} core{'s' * (cores > 1)}: it gets as many "
        "threads, "
        "for more would only wait for each other; ask for fewer, or give the process more cores",
        ThreadCountWarning,
    )
    return cores


def _stop() -> None:
    """Stop at exit: let no run start, and join every worker unless another thread is still in a run."""
    _process.exiting = True
    deadline = time.monotonic() + _EXIT_PATIENCE
    still = [r for r in list(_process.runners) if not r.entry.take_for_good(max(0.0, deadline - time.monotonic()))]
    if still:
        leave_open_at_exit()
    images = [runtime.image for runtime in _process.runtimes if runtime.image is not None]
    for retained in (*still, *(images if still else [])):
        # Its code and memory must stay until the process ends.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(retained))
    for runtime in _process.runtimes if not still else ():
        while runtime.pools:
            destroy = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(runtime.address(POOL_DESTROY_SYMBOL))
            destroy(runtime.pools.popitem()[1])


def _drop_after_fork() -> None:
    """Forget the pools in a child process: their workers are the parent's."""
    for runtime in _process.runtimes:
        runtime.pools.clear()
    _process.runners = weakref.WeakSet()


atexit.register(_stop)
os.register_at_fork(after_in_child=_drop_after_fork)
