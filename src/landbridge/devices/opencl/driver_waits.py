"""Waits in the OpenCL driver. The main thread leaves them to a helper thread, so that Ctrl-C ends them.

clWaitForEvents ends neither by a signal nor at a time limit. Python handles signals in the main thread alone, so that
all other threads call it. A helper costs two switches of threads, some 4 us, where a poll that sleeps costs 60.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

import pyopencl as cl

#: Longest wait of the main thread for its helper, in seconds.
_SLICE = 0.05

#: Lets another thread of the system run on this processor, such as the driver's own. It releases the GIL.
yield_processor: Callable[[], object] = ctypes.CDLL(None).sched_yield

# Not through pyopencl: at exit Python ends daemon threads inside of their next call, and code in C++ aborts the process
# then.
_wait_for_events: Any = ctypes.CDLL(cl._cl.__file__).clWaitForEvents
_wait_for_events.argtypes, _wait_for_events.restype = [ctypes.c_uint32, ctypes.c_void_p], ctypes.c_int32


def wait_in_driver(event: cl.Event) -> int:
    """Wait for ``event``; returns the status of clWaitForEvents. Ctrl-C ends the wait of the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return _wait(event)
    helper = _idle.pop() if _idle else _Helper()
    status = helper.wait_for(event)
    _idle.append(helper)  # not after an interrupt, as its thread still waits then
    return status


def _wait(event: cl.Event) -> int:
    handle = ctypes.c_void_p(event.int_ptr)
    return int(_wait_for_events(1, ctypes.byref(handle)))


class _Helper:
    """A thread that waits for one event at a time."""

    def __init__(self) -> None:
        self._events: SimpleQueue[cl.Event | None] = SimpleQueue()
        self._results: SimpleQueue[int] = SimpleQueue()
        threading.Thread(target=_serve, args=(self._events, self._results), name="opencl wait", daemon=True).start()

    def wait_for(self, event: cl.Event) -> int:
        """Wait until the thread has waited for ``event``; returns the status. A signal ends the wait, and the thread
        after its own.
        """
        try:
            self._events.put(event)
            while True:
                try:
                    return self._results.get(timeout=_SLICE)
                except Empty:  # ``_thread.interrupt_main`` of another thread ends no wait
                    continue
        except BaseException:
            self._events.put(None)
            raise


def _serve(events: SimpleQueue[cl.Event | None], results: SimpleQueue[int]) -> None:
    while (event := events.get()) is not None:
        status = _wait(event)
        del event  # the next one may come much later
        results.put(status)


#: The helper that is not in use, at most one: only the main thread has helpers.
_idle: list[_Helper] = []
