"""Events of OpenCL queues: waits that end at a time limit or at Ctrl-C, and let other threads run."""

from __future__ import annotations

import time
from typing import Final

import pyopencl as cl

from landbridge.devices.opencl.driver_errors import driver_call
from landbridge.errors import DeviceLostError

_SPIN_SECONDS: Final = 50e-6
_LONGEST_NAP: Final = 1e-3


class QueueEvent:
    """A point in ``queue``: all work before ``event`` has completed when that has.

    ``keep`` is what the commands before use and the driver does not keep alive.
    """

    __slots__ = ("_flushed", "event", "keep", "queue")

    def __init__(self, queue: cl.CommandQueue, event: cl.Event, keep: object = None) -> None:
        self.queue = queue
        self.event = event
        self.keep = keep
        self._flushed = False

    def query(self) -> bool:
        """Returns whether it has completed; raises DeviceLostError when a command ended in an error."""
        if not self._flushed:  # a driver may hold back work that was not flushed
            with driver_call("a flush"):
                self.queue.flush()
            self._flushed = True
        with driver_call("a look at an event"):
            status = self.event.command_execution_status
        if status < 0:
            raise DeviceLostError(f"a command ended with error {status} of the OpenCL driver")
        if status != cl.command_execution_status.COMPLETE:
            return False
        self.keep = None
        return True

    def synchronize(self, timeout: float | None = None) -> bool:
        """Wait at most ``timeout`` seconds (None: for ever); returns whether it has completed.

        clWaitForEvents has neither a limit nor an end by Ctrl-C: short waits spin, long ones poll, and sleep in between
        for a sixteenth of the time waited so far.
        """
        started = time.monotonic()
        while not self.query():
            waited = time.monotonic() - started
            if timeout is not None and waited >= timeout:
                return False
            if waited > _SPIN_SECONDS:
                nap = min(waited / 16, _LONGEST_NAP)
                time.sleep(nap if timeout is None else min(nap, timeout - waited))
        return True


def elapsed_ms(start: QueueEvent, end: QueueEvent) -> float | None:
    """Returns the milliseconds between two completed events by the device's clock; None where queues are not timed."""
    try:
        return max(0.0, (end.event.profile.end - start.event.profile.end) / 1e6)
    except cl.Error:
        return None
