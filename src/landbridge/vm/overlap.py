"""Overlap: which of the steps that devices still work on must be done before the next step of a program.

It is computed when the program is bound, from the bytes that steps touch. A device works in order, so its own steps
need not wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from landbridge.device.api import Device
from landbridge.vm.dependences import Touch, any_conflict


class Overlap:
    """The steps in flight at one point of a list of steps, by numbers that are assigned here."""

    def __init__(self) -> None:
        self._flying: dict[int, tuple[Device, list[Touch]]] = {}
        self._touched: dict[int, list[Touch]] = {}  # of steps that were waited for, too

    def __bool__(self) -> bool:
        """Returns whether any step is in flight."""
        return bool(self._flying)

    def number(self) -> int:
        """Returns a new number for a step that will be in flight."""
        number = len(self._touched) + 1
        self._touched[number] = []
        return number

    def start(self, number: int, device: Device, touched: Sequence[Touch]) -> None:
        """Record that step ``number`` starts on ``device`` and touches ``touched``, besides what was recorded
        before.
        """
        self._touched[number] += touched
        self._flying[number] = device, self._touched[number]

    def before(self, touched: Sequence[Touch], device: Device | None = None) -> tuple[int, ...]:
        """Returns the steps in flight that a step which touches ``touched`` must wait for, and removes them.

        ``device``: the device of that step, None for the host.
        """
        found = tuple(
            number
            for number, (where, flying) in self._flying.items()
            if where != device and any_conflict(touched, flying)
        )
        for number in found:
            del self._flying[number]
        return found

    def conflicts(self, number: int, touched: Iterable[Touch]) -> bool:
        """Returns whether step ``number`` and one that touches ``touched`` must not run at once."""
        return any_conflict(touched, self._touched[number])

    def all(self) -> tuple[int, ...]:
        """Returns every step in flight, and removes all."""
        found = tuple(self._flying)
        self._flying.clear()
        return found
