"""Thread pools of the process: one per number of threads, run by the runtime of the first image loaded.

Workers are native threads. At exit they are joined before any code goes away; after fork they are gone, and the
child makes new pools.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import weakref
from dataclasses import dataclass, field
from typing import Any

from landbridge.errors import BindError, OutOfMemoryError
from landbridge.executable.abi import POOL_CREATE_SYMBOL, POOL_DESTROY_SYMBOL, RUN_SYMBOL
from landbridge.vm.code_image import LoadedImage

#: Seconds that exit waits for runs of daemon threads; the pool of a longer run is left to the system.
_EXIT_PATIENCE = 1.0


@dataclass
class _Process:
    """What this process has: the image whose runtime serves it, and its pools by number of threads."""

    image: LoadedImage | None = None
    pools: dict[int, int] = field(default_factory=dict)
    users: weakref.WeakSet[Any] = field(default_factory=weakref.WeakSet)
    lock: threading.Lock = field(default_factory=threading.Lock)


_process = _Process()


def runtime_address(image: LoadedImage) -> int:
    """The address of ``landbridge_run_v1`` of this process; ``image`` serves it when it is the first."""
    with _process.lock:
        if _process.image is None:
            for symbol in (RUN_SYMBOL, POOL_CREATE_SYMBOL, POOL_DESTROY_SYMBOL):
                if symbol not in image:
                    raise BindError(f"the code image has no runtime ({symbol}); compile the model again")
            _process.image = image
    return _process.image.address(RUN_SYMBOL)


def pool_address(image: LoadedImage, threads: int, user: threading.Lock) -> int:
    """The pool of ``threads`` threads, the caller counted; 0 for one thread, which needs none.

    ``user`` is the lock held during every run on the pool: exit takes it before the workers are joined.
    Raises OutOfMemoryError when the system gives no more threads.
    """
    if threads == 1:
        return 0
    runtime_address(image)
    with _process.lock:
        address = _process.pools.get(threads, 0)
        if not address:
            create = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(_symbol(POOL_CREATE_SYMBOL))
            address = create(threads) or 0
            if not address:
                raise OutOfMemoryError(f"the system gave no pool of {threads} threads; ask for fewer (num_threads=)")
            _process.pools[threads] = address
        _process.users.add(user)
    return address


def default_threads() -> int:
    """The processors this process may run on."""
    return len(os.sched_getaffinity(0))


def _symbol(name: str) -> int:
    if _process.image is None:
        raise BindError("no code image is loaded; load one before its thread pool")
    return _process.image.address(name)


def _join_workers() -> None:
    """At exit: join every worker, unless a daemon thread is still in a run."""
    if not _process.pools:
        return
    if all(user.acquire(timeout=_EXIT_PATIENCE) for user in list(_process.users)):
        destroy = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_symbol(POOL_DESTROY_SYMBOL))
        while _process.pools:
            destroy(_process.pools.popitem()[1])
    else:
        # Workers still run the image: it must stay mapped until the process ends.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(_process.image))


def _drop_after_fork() -> None:
    """In a child: the workers are the parent's, so the pools are no more than its memory."""
    _process.pools.clear()
    _process.users = weakref.WeakSet()
    _process.lock = threading.Lock()


atexit.register(_join_workers)
os.register_at_fork(after_in_child=_drop_after_fork)
