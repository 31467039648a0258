"""The order in which steps of a program are submitted: devices work as early, and are waited for as late, as can be.

Steps keep the order that their dependences demand, and no other: a step of the host that waits for a device comes after
those of the host that need not wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

from landbridge.device.api import Device
from landbridge.records import record
from landbridge.vm.dependences import Touch, dependences

_T = TypeVar("_T")


@record(frozen=True, slots=True)
class Item(Generic[_T]):
    """A step ``subject`` of ``device`` (None: the host) and what it touches; ``touched`` None means anything."""

    subject: _T
    device: Device | None
    touched: Sequence[Touch] | None


@record(frozen=True, slots=True)
class OrderedItem(Generic[_T]):
    """A step in the order found. ``is_awaited``: whether the host, or another device, waits for it in particular."""

    subject: _T
    is_awaited: bool


def by_dependences(items: Sequence[Item[_T]]) -> list[OrderedItem[_T]]:
    """Returns the steps with each step of a device as early as its dependences allow, and each wait as late.

    Each device keeps its own order. A step that touches anything stays between those before and those after it.
    """
    found: list[OrderedItem[_T]] = []
    start = 0
    for stop in [*(n for n, item in enumerate(items) if item.touched is None), len(items)]:
        found += _Order(items[start:stop]).ordered()
        found += [OrderedItem(item.subject, False) for item in items[stop : stop + 1]]
        start = stop + 1
    return found


class _Order(Generic[_T]):
    """The order of ``items``, none of which touches anything."""

    def __init__(self, items: Sequence[Item[_T]]) -> None:
        self._items = items
        self._direct = dependences([item.touched or () for item in items])
        self._before: list[set[int]] = [set(direct) for direct in self._direct]
        last: dict[Device, int] = {}
        for number, item in enumerate(items):
            if item.device is not None:
                self._before[number].update({last[item.device]} if item.device in last else ())
                last[item.device] = number
        self._after: list[list[int]] = [[] for _ in items]
        for number, before in enumerate(self._before):
            for other in before:
                self._after[other].append(number)
        self._enables = [False] * len(items)
        for number in reversed(range(len(items))):
            self._enables[number] = any(
                items[after].device is not None or self._enables[after] for after in self._after[number]
            )
        self._is_awaited = [False] * len(items)
        for number, direct in enumerate(self._direct):
            for other in direct:
                self._is_awaited[other] |= items[other].device not in (None, items[number].device)
        #: The last step of each device that the host has waited for: it has then waited for those before, too.
        self._done: dict[Device, int] = {}

    def ordered(self) -> Iterator[OrderedItem[_T]]:
        """Yields the steps in their order."""
        missing = [len(before) for before in self._before]
        free = [(self._rank(number), number) for number, count in enumerate(missing) if not count]
        heapify(free)
        while free:
            _, number = heappop(free)
            if self._wait_for(number):  # others may wait for nothing more
                free = [(self._rank(other), other) for _, other in free]
                heapify(free)
            yield OrderedItem(self._items[number].subject, self._is_awaited[number])
            for after in self._after[number]:
                missing[after] -= 1
                if not missing[after]:
                    heappush(free, (self._rank(after), after))

    def _rank(self, number: int) -> int:
        """Returns the rank of a step among those that may come next: the lowest is first, and equal ranks keep the
        program's order.

        First comes what a device can begin with at once, then what a device needs and no device delays, last what waits
        for a device and no device needs. Between a step that waits and is needed, and one that does neither, only the
        times that steps take could decide. A step of a device that waits for another device keeps the host waiting.
        """
        waits = self._waits(number)
        if self._items[number].device is not None:
            return 1 if waits else -1
        return 1 + waits - self._enables[number]

    def _waits(self, number: int) -> bool:
        return any(True for _ in self._awaited(number))

    def _awaited(self, number: int) -> Iterator[tuple[Device, int]]:
        """Yields the steps of devices that the host waits for before step ``number``."""
        for other in self._direct[number]:
            device = self._items[other].device
            if device not in (None, self._items[number].device) and other > self._done.get(device, -1):
                yield device, other

    def _wait_for(self, number: int) -> bool:
        """Record that step ``number`` comes next; returns whether the host waited for a device."""
        awaited = list(self._awaited(number))
        for device, other in awaited:
            self._done[device] = max(other, self._done.get(device, -1))
        return bool(awaited)
