"""Clocks: which queued work happens before which, by a vector clock for each queue and one for the host.

The threads of the host share one clock: what one of them has waited for counts as waited for by all, as their own
synchronization is not visible here. So an order may be assumed that does not exist; none is missed.
"""

from __future__ import annotations

from collections.abc import Hashable

from landbridge.records import record

Clock = dict[Hashable, int]


@record(frozen=True, slots=True)
class Stamp:
    """The ``tick``th piece of work on ``queue``, and the ``clock`` of all that comes before it, itself included."""

    queue: Hashable
    tick: int
    clock: Clock


class Clocks:
    """The clocks of the queues of one device. Callers hold a lock."""

    def __init__(self) -> None:
        self._queues: dict[Hashable, Clock] = {}
        self._host: Clock = {}

    def submit(self, queue: Hashable) -> Stamp:
        """Queues work after all that ``queue`` waits for, and after what the host has waited for; returns its stamp."""
        clock = self._queues.setdefault(queue, {})
        _join(clock, self._host)
        clock[queue] = clock.get(queue, 0) + 1
        return Stamp(queue, clock[queue], dict(clock))

    def now(self, queue: Hashable) -> Stamp:
        """Returns the present point of ``queue``: after all that was queued there so far."""
        clock = self._queues.setdefault(queue, {})
        return Stamp(queue, clock.get(queue, 0), dict(clock))

    def after(self, queue: Hashable, stamp: Stamp) -> None:
        """Orders what is queued on ``queue`` from now on after ``stamp``."""
        _join(self._queues.setdefault(queue, {}), stamp.clock)

    def observe(self, stamp: Stamp) -> None:
        """Notes that the host knows ``stamp`` to be done, and so all that comes before it."""
        _join(self._host, stamp.clock)

    def is_over(self, stamp: Stamp) -> bool:
        """Returns whether the host knows that ``stamp`` is done."""
        return self._host.get(stamp.queue, 0) >= stamp.tick

    def is_ordered(self, earlier: Stamp, later: Stamp) -> bool:
        """Returns whether ``earlier`` comes before ``later``, whatever the device does."""
        return later.clock.get(earlier.queue, 0) >= earlier.tick

    def end(self, queue: Hashable) -> None:
        """Notes that nothing more is queued on ``queue``; where the host knows its work to be done, nothing needs to be
        ordered after that any more, and it is forgotten.
        """
        if self._host.get(queue, 0) >= self._queues.get(queue, {}).get(queue, 0):
            self._queues.pop(queue, None)
            for clock in (self._host, *self._queues.values()):
                clock.pop(queue, None)


def _join(clock: Clock, other: Clock) -> None:
    for queue, tick in other.items():
        if clock.get(queue, 0) < tick:
            clock[queue] = tick
