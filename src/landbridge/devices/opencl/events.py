"""Events of OpenCL queues: waits that end at a time limit or at Ctrl-C, and let other threads run."""

from __future__ import annotations

from time import monotonic, sleep
from typing import Any, Final

import pyopencl as cl

from landbridge.devices.opencl.driver_errors import driver_call, translated
from landbridge.devices.opencl.driver_waits import wait_in_driver, yield_processor
from landbridge.errors import DeviceLostError

_SPIN_SECONDS: Final = 50e-6
_LONGEST_NAP: Final = 1e-3
_STATUS: Final = cl.event_info.COMMAND_EXECUTION_STATUS
_COMPLETE: Final = cl.command_execution_status.COMPLETE


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
        return self._has_completed()

    def _has_completed(self) -> bool:
        try:
            status: Any = self.event.get_info(_STATUS)
        except cl.Error as error:
            raise translated("a look at an event", error) from error
        if status < 0:
            raise DeviceLostError(f"a command ended with error {status} of the OpenCL driver")
        if status != _COMPLETE:
            return False
        self.keep = None
        return True

    def synchronize(self, timeout: float | None = None) -> bool:
        """Wait at most ``timeout`` seconds (None: for ever); returns whether it has completed.

        Short waits look again and again, while the driver's threads may run on this processor. Long ones wait in the
        driver; those with a limit, which clWaitForEvents does not have, sleep for a sixteenth of the time waited so
        far.
        """
        if self.query():
            return True
        started = monotonic()
        while (waited := monotonic() - started) < _SPIN_SECONDS and (timeout is None or waited < timeout):
            yield_processor()
            if self._has_completed():
                return True
        if timeout is None:
            status = wait_in_driver(self.event)
            if status != cl.status_code.SUCCESS:
                raise DeviceLostError(f"a wait for a command ended with error {status} of the OpenCL driver")
            self.keep = None
            return True
        while not self._has_completed():
            waited = monotonic() - started
            if waited >= timeout:
                return False
            sleep(min(waited / 16, _LONGEST_NAP, timeout - waited))
        return True


def elapsed_ms(start: QueueEvent, end: QueueEvent) -> float | None:
    """Returns the milliseconds between two completed events by the device's clock; None where queues are not timed."""
    try:
        return max(0.0, (end.event.profile.end - start.event.profile.end) / 1e6)
    except cl.Error:
        return None
