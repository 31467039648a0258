"""In flight: work of one run that devices have been given and have not finished."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol


class Pending(Protocol):
    """Work that a device was given."""

    def wait(self) -> None:
        """Wait until it is done; raises what it raised, and DeviceLostError when its device is gone."""


#: The pending work of each step, by the step's number, in the order of submission.
InFlight = dict[int, Pending]


def wait_for(flight: InFlight, ordinals: Sequence[int]) -> None:
    """Wait for the steps ``ordinals`` in ``flight``, and remove them; raises what the first one raised."""
    for number in ordinals:
        pending = flight.get(number)
        if pending is not None:
            pending.wait()
            del flight[number]


def give_up(flight: InFlight) -> None:
    """Wait for the rest of a run after an error, as nobody may use its memory before. Raises nothing."""
    for pending in flight.values():
        with suppress(Exception):
            pending.wait()
