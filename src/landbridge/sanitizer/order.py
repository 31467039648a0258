"""Order: the queued work of a sanitized device, and a check for accesses that nothing orders."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from landbridge.device.api import DeviceAPI, Event, Region
from landbridge.device.protocols import RowTable
from landbridge.process.locks import new_lock
from landbridge.sanitizer.block import StampedAccess, TrackedBlock
from landbridge.sanitizer.clocks import Clocks, Stamp
from landbridge.sanitizer.findings import fail

#: A use of a block: from where to where, and whether it is written (None: it may be).
Use = tuple[TrackedBlock, int, int, bool | None]
Work = tuple[Stamp, list[tuple[TrackedBlock, StampedAccess]]]


class TrackedEvent:
    """An Event of the inner device at ``stamp``; ``done`` is called when the host sees it complete."""

    __slots__ = ("_done", "_reported", "inner", "stamp")

    def __init__(self, inner: Event, stamp: Stamp, done: Callable[[Stamp], None]) -> None:
        self.inner, self.stamp, self._done = inner, stamp, done
        self._reported = False

    def query(self) -> bool:
        """Returns the result of the inner Event."""
        return self._noted(self.inner.query())

    def synchronize(self, timeout: float | None = None) -> bool:
        """Waits as the inner Event does, and returns its result."""
        return self._noted(self.inner.synchronize(timeout))

    def _noted(self, over: bool) -> bool:
        if over is True and not self._reported:
            self._reported = True
            self._done(self.stamp)
        return over

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Order:
    """The clocks of a device, and the work that the host has not seen done."""

    def __init__(self) -> None:
        self.lock = new_lock()
        self.clocks = Clocks()
        self._pending: list[tuple[Stamp, list[tuple[TrackedBlock, StampedAccess]], Any]] = []
        self._recording: dict[Hashable, list[Region | RowTable]] = {}

    def begin(self, queue: Hashable, subject: str, uses: Sequence[Use]) -> Work:
        """Returns the stamp and accesses of new work on ``queue``; reports a finding for an unordered earlier access
        that conflicts.
        """
        with self.lock:
            stamp = self.clocks.submit(queue)
            accesses = [
                (block, StampedAccess(start, stop, writes, stamp, subject))
                for block, start, stop, writes in uses
                if start < stop
            ]
            for block, access in accesses:
                for known in block.accesses:
                    if access.conflicts(known) and not self.clocks.is_ordered(known.stamp, stamp):
                        byte = max(access.start, known.start)
                        fail(
                            "race",
                            f"{subject} {_does(access)} byte {byte} of {block}, and nothing orders it after "
                            f"{known.subject}, "
                            f"which {_does(known)} it; wait for its event, or call sync_stream_from_to",
                        )
            return stamp, accesses

    def submit(self, stamp: Stamp, accesses: list[tuple[TrackedBlock, StampedAccess]], borrowed: Any) -> None:
        """Notes that the device took the work; ``borrowed`` (snapshots and their owners) is retained until it is
        done.
        """
        with self.lock:
            for block, access in accesses:
                block.accesses.append(access)
            self._pending.append((stamp, accesses, borrowed))

    def forget(self, api: DeviceAPI, index: int) -> None:
        """Forgets the memory of instance ``index`` of ``api``; accesses of work there are not checked any more."""
        with self.lock:
            self._pending = [
                (
                    stamp,
                    [(b, a) for b, a in uses if (b.inner.device.api, b.inner.device.index) != (api, index)],
                    borrowed,
                )
                for stamp, uses, borrowed in self._pending
            ]

    def observe(self, stamp: Stamp) -> list[tuple[TrackedBlock, str]]:
        """Notes that the host saw ``stamp`` done; returns the blocks that it and all before it used, and by what
        work.
        """
        with self.lock:
            self.clocks.observe(stamp)
            over = [work for work in self._pending if self.clocks.is_over(work[0])]
            self._pending = [work for work in self._pending if not self.clocks.is_over(work[0])]
        touched: dict[TrackedBlock, str] = {}
        for _, accesses, borrowed in over:
            if borrowed is not None:
                borrowed[0].check()
            for block, access in accesses:
                with self.lock:
                    if access in block.accesses:
                        block.accesses.remove(access)
                if access.writes is not False:
                    touched[block] = f"{touched[block]} or {access.subject}" if block in touched else access.subject
        return list(touched.items())

    def unfinished(self, block: TrackedBlock, start: int, stop: int, writes: bool) -> list[StampedAccess]:
        """Returns the accesses of ``block`` that conflict with one by the host, and that the host has not seen done."""
        with self.lock:
            return [
                known
                for known in block.accesses
                if known.start < stop
                and start < known.stop
                and (writes or known.writes is not False)
                and not self.clocks.is_over(known.stamp)
            ]

    def host_waited(self, block: TrackedBlock, start: int, stop: int, writes: bool) -> list[tuple[TrackedBlock, str]]:
        """Notes, as ``observe``, that a call returned after the work on these bytes."""
        touched: list[tuple[TrackedBlock, str]] = []
        for access in self.unfinished(block, start, stop, writes):
            touched += self.observe(access.stamp)
        return touched

    def now(self, queue: Hashable) -> Stamp:
        """Returns the present point of ``queue``."""
        with self.lock:
            return self.clocks.now(queue)

    def after(self, queue: Hashable, stamp: Stamp) -> None:
        """Orders what is queued on ``queue`` from now on after ``stamp``."""
        with self.lock:
            self.clocks.after(queue, stamp)

    def end(self, queue: Hashable) -> None:
        """Notes that nothing more is queued on ``queue``."""
        with self.lock:
            self.clocks.end(queue)

    def start_recording(self, queue: Hashable) -> None:
        """Starts to record work on ``queue`` instead of running it."""
        self._recording[queue] = []

    def recording(self, queue: Hashable) -> list[Region | RowTable] | None:
        """Returns the operands recorded so far on ``queue``, for more to be added; None where work runs."""
        return self._recording.get(queue)

    def stop_recording(self, queue: Hashable) -> list[Region | RowTable]:
        """Returns the operands that were recorded."""
        return self._recording.pop(queue)


def _does(access: StampedAccess) -> str:
    return {True: "writes", False: "reads", None: "uses"}[access.writes]
