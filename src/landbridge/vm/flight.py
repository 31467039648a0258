"""In flight: what devices are given by the steps of one run and have not done yet."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol


class Pending(Protocol):
    """Work that a device was given."""

    def wait(self) -> None:
        """Return once it is done; raises what it raised, and DeviceLostError when its device is gone."""


#: The work of each step that is under way, by the step's number, in the order in which it was given.
InFlight = dict[int, Pending]


def wait_for(flight: InFlight, ordinals: Sequence[int]) -> None:
    """Wait for the steps of ``ordinals`` that are in ``flight``, which they leave; raises what the first one raised."""
    for number in ordinals:
        pending = flight.get(number)
        if pending is not None:
            pending.wait()
            del flight[number]


def give_up(flight: InFlight) -> None:
    """After an error of a run: wait for what is left of it, as nobody may use its memory before. Raises nothing."""
    for pending in flight.values():
        with suppress(Exception):
            pending.wait()
