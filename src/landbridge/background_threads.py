"""Work on memory in background threads: numpy, digests and reads of files let other threads go on meanwhile."""

from __future__ import annotations

import mmap
import resource
import threading
from collections.abc import Callable
from functools import cache, partial
from itertools import pairwise
from threading import Thread
from typing import Any, TypeVar

from landbridge.errors import OutOfMemoryError
from landbridge.usable_cores import usable_cores

_T = TypeVar("_T")

#: Bytes of a part at least: a thread is started in the time that 0.3 MB are copied in.
_PART = 1 << 20
_MOST_PARTS = 4


#: Bytes that glibc gives the stack of a thread where no limit says how many.
_UNLIMITED_STACK = 2 << 20
#: Bytes that a thread needs besides its stack until it has said that it runs: what Python maps for its objects.
_FIRST_BYTES = 4 << 20


def start(thread: Thread) -> None:
    """Start ``thread``; raises OutOfMemoryError where the system has no memory for it, or has no more threads.

    Python waits for ever for a thread that has a stack and then finds no memory to say that it runs. Where memory is
    limited it is therefore asked for first.
    """
    check_threads(1)
    try:
        thread.start()
    except RuntimeError as error:
        if thread.ident is not None:
            raise  # it was started before
        raise OutOfMemoryError(_no_thread(str(error))) from error


def check_threads(count: int) -> None:
    """Raise OutOfMemoryError where the limit of this process leaves no memory for ``count`` more threads."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return
    stack, _ = resource.getrlimit(resource.RLIMIT_STACK)
    default = _UNLIMITED_STACK if stack == resource.RLIM_INFINITY else stack
    needed = count * ((threading.stack_size() or default) + _FIRST_BYTES)
    try:
        mmap.mmap(-1, needed, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError as error:
        raise OutOfMemoryError(_no_thread(f"{needed:,} bytes: {error.strerror}")) from error


def _no_thread(reason: str) -> str:
    return (
        f"the system starts no more threads for this process ({reason}); end other programs, or raise its limits "
        "(ulimit -v, ulimit -u), or use fewer threads"
    )


def begin(work: Callable[[], _T], name: str) -> Callable[[], _T]:
    """Let a thread called ``name`` do ``work``; what is returned waits for it, and returns or raises what it did.

    Where no more threads are to be had ``work`` is done when that is called.
    """
    done: list[Callable[[], _T]] = []

    def run() -> None:
        try:
            result = work()
        except BaseException as error:
            done.append(lambda error=error: _raise(error))  # type: ignore[misc]
        else:
            done.append(lambda: result)

    thread = Thread(target=run, name=name, daemon=True)
    try:
        start(thread)
    except OutOfMemoryError:
        return work

    def finish() -> _T:
        thread.join()
        return done[0]()

    return finish


def in_parts(work: Callable[[int, int], Any], count: int, nbytes: int) -> None:
    """Do ``work`` from each begin to its end, in as many parts of ``count`` as pay for memory of ``nbytes``, each in a
    thread of its own; raises what the first that fails raises."""
    parts = max(1, min(_cores(), _MOST_PARTS, count, nbytes // _PART))
    ends = [count * i // parts for i in range(parts + 1)]
    others = [begin(partial(work, *part), "part") for part in pairwise(ends[1:])]
    try:
        work(0, ends[1])
    finally:
        finished = [_outcome(other) for other in others]
    for error in finished:
        if error is not None:
            raise error


def _outcome(finish: Callable[[], object]) -> BaseException | None:
    try:
        finish()
    except BaseException as error:
        return error
    return None


def _raise(error: BaseException) -> Any:
    raise error


_cores = cache(usable_cores)
