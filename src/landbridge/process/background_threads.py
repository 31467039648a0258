"""Work on memory in background threads: numpy, digests and file reads release the GIL, so that Python goes on."""

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
from landbridge.process.usable_cores import usable_cores

_T = TypeVar("_T")

#: Bytes of a part at least: a thread is started in the time that 0.3 MB are copied in.
_PART = 1 << 20
_MOST_PARTS = 4


#: Bytes that glibc gives the stack of a thread where no limit says how many.
_UNLIMITED_STACK = 2 << 20
#: Bytes that a thread needs in addition to its stack until it runs: memory that Python maps for its objects.
_FIRST_BYTES = 4 << 20


def start(thread: Thread) -> None:
    """Starts ``thread``; raises OutOfMemoryError where the system has no memory or no more threads for it.

    Python waits forever for a thread that has a stack but finds no memory to report that it runs. Where memory is
    limited, the memory is therefore tried first.
    """
    check_threads(1)
    try:
        thread.start()
    except RuntimeError as error:
        if thread.ident is not None:
            raise  # the thread was started before
        raise OutOfMemoryError(_no_thread(str(error))) from error


def check_threads(count: int) -> None:
    """Raises OutOfMemoryError where the limit of this process leaves no memory for ``count`` more threads."""
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
    """Starts ``work`` in a thread called ``name``; returns a function that waits for it and returns or raises its
    result.

    Where no thread can be started, that function does ``work`` itself.
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
    """Splits ``range(count)`` into as many parts as pay for memory of ``nbytes``, and calls ``work(begin, end)`` for
    each in its own thread; raises the error of the first part that fails.
    """
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
