"""Locks that are free in the child after a fork, which has none of the threads that may have held them.

A fork waits for the holder of each lock, at most ``_PATIENCE``, so that the data it guards is consistent in the child;
the child's locks are free in any case. All locks of the package are made here. A fork waits as long for imports of
other threads: Python has a lock for each module that is being imported, and a child that needs the module would wait
for a thread that it lacks. Another thread may still begin an import between that wait and the fork itself, so the child
forgets such imports and imports these modules by itself.
"""

from __future__ import annotations

import _frozen_importlib
import functools
import os
import sys
import time
import weakref
from _thread import RLock, get_ident  # threading's own type; a user's file of that name may be imported in its place
from collections.abc import Callable, MutableMapping
from typing import Any, TypeVar

#: Seconds that a fork waits: longer than LLVM takes for a module.
_PATIENCE = 10.0
#: Seconds after which a fork looks again whether imports are over.
_LOOK_AGAIN = 0.001
_RLOCK = type(RLock())

#: CPython's locks of modules that are being imported now, by the name of the module; elsewhere there is no such table.
_imports: MutableMapping[str, Callable[[], object]] = getattr(_frozen_importlib, "_module_locks", {})
#: Packages that this one imports when it first needs them, besides those of Python. Nobody forks while their modules
#: run, whereas a module of a user may, and an import that waits for the fork is none to wait for.
_IMPORTED = frozenset(
    {"landbridge", "google", "llvmlite", "ml_dtypes", "numba", "numpy", "onnx", "onnx_ir", "tvm_ffi", "xdsl"}
)

#: References to all locks, in a dict, as that may change while another thread reads it and a WeakSet may not.
_locks: dict[weakref.ref[RLock], None] = {}
_held: list[RLock] = []


def new_lock() -> RLock:
    """Returns a lock that its own thread may take again: finalizers and signal handlers may run at any moment."""
    lock = RLock()
    _enter(lock)
    return lock


def adopt(lock: object) -> None:
    """Makes an RLock of another package free after a fork too; other lock types are left as they are."""
    if isinstance(lock, _RLOCK):
        _enter(lock)


def _enter(lock: RLock) -> None:
    forget = _locks.pop  # this module may be cleared by then
    _locks[weakref.ref(lock, lambda gone: forget(gone, None))] = None


def _all_locks() -> list[RLock]:
    return [lock for known in list(_locks) if (lock := known()) is not None]


_T = TypeVar("_T")


class cached_property(functools.cached_property[_T]):  # noqa: N801
    """Replaces that of functools, which before Python 3.12 has one lock for all instances of a class."""

    def __init__(self, function: Callable[[Any], _T]) -> None:
        super().__init__(function)
        adopt(getattr(self, "lock", None))


def _take_all() -> None:
    deadline = time.monotonic() + _PATIENCE
    while (obstacle := _obstacle()) is not None and (left := deadline - time.monotonic()) > 0:
        _give_back()  # never wait while holding one: the holder of the others may wait for it
        if isinstance(obstacle, str):
            time.sleep(_LOOK_AGAIN)
        elif obstacle.acquire(timeout=left):
            _held.append(obstacle)


def _obstacle() -> RLock | str | None:
    """Takes every lock; returns the first that another thread holds, or else the name of a module that another thread
    imports.
    """
    taken = next((lock for lock in _all_locks() if not _take(lock)), None)
    return taken or next((name for name in list(_imports) if _is_ours(name.partition(".")[0])), None)


def _is_ours(package: str) -> bool:
    return package in _IMPORTED or package in sys.stdlib_module_names


def _take(lock: RLock) -> bool:
    taken = lock.acquire(blocking=False)
    if taken:
        _held.append(lock)
    return taken


def _give_back() -> None:
    while _held:
        _held.pop().release()


def _forget_imports() -> None:
    """Forgets, in a child process, which modules other threads of the parent were importing.

    A module that such a thread had begun to run is run again by the child's first import of it.
    """
    for name, get_lock in list(_imports.items()):
        if _is_ours(name.partition(".")[0]) and getattr(get_lock(), "owner", None) != get_ident():
            _imports.pop(name, None)
            if getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False):
                del sys.modules[name]


def _free_all() -> None:
    _forget_imports()
    _give_back()
    for lock in _all_locks():
        if _take(lock):  # or this thread holds it, as it forked while it imported
            _give_back()
        else:
            lock._at_fork_reinit()  # type: ignore[attr-defined]  # as threading does with its own


os.register_at_fork(before=_take_all, after_in_parent=_give_back, after_in_child=_free_all)
