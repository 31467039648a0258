"""Keepers: the allocators of the process that retain unused memory, which they release when a device runs out."""

from __future__ import annotations

import os
from typing import Protocol, runtime_checkable
from weakref import WeakSet

from landbridge.device.api import Device, Space
from landbridge.memory.allocators.in_flight import finish


class Keeper(Protocol):
    """An allocator that retains memory that is returned."""

    @property
    def device(self) -> Device:
        """Returns the device whose memory it is."""

    def trim(self) -> int:
        """Release what is retained unused, after waiting for work pending on it; returns the bytes released.

        Any thread may call this.
        """


@runtime_checkable
class SpaceKeeper(Keeper, Protocol):
    """A Keeper that hands out whole spaces again."""

    def retire(self, space: Space) -> None:
        """Mark ``space``, which is in use, not to be handed out again once it comes back."""


_keepers: WeakSet[Keeper] = WeakSet()

# A child's memory is its own, and a lock of the parent's pools may have been held by a thread that the child lacks.
os.register_at_fork(after_in_child=_keepers.clear)


def register_keeper(keeper: Keeper) -> None:
    """Register ``keeper`` with ``trim(device)`` for as long as it lives."""
    _keepers.add(keeper)


def retire(space: Space) -> None:
    """Tell every Keeper not to hand out ``space`` again, as unknown others may use its memory from now on."""
    for keeper in list(_keepers):
        if isinstance(keeper, SpaceKeeper):
            keeper.retire(space)


def trim(device: Device) -> int:
    """Release what the pools and workspaces of ``device`` hold unused; returns the bytes released.

    Waits for queued work on its memory first, as that keeps blocks from coming back.
    """
    given_back = 0
    finish(device)  # owners that were released while work was pending
    while freed := sum(keeper.trim() for keeper in list(_keepers) if keeper.device == device):
        given_back += freed  # again: one keeper may lie over another
    return given_back
