"""Keepers: the allocators of the process that hold memory nobody uses, for when a device runs out."""

from __future__ import annotations

import os
from typing import Protocol, runtime_checkable
from weakref import WeakSet

from landbridge.device.api import Device, Space
from landbridge.memory.allocators.in_flight import finish


class Keeper(Protocol):
    """An allocator that keeps what is returned."""

    @property
    def device(self) -> Device:
        """Whose memory it is."""

    def trim(self) -> int:
        """Give back what is held unused, after waiting for work pending on it; returns the bytes given back.

        Callable from any thread.
        """


@runtime_checkable
class SpaceKeeper(Keeper, Protocol):
    """A Keeper that hands whole spaces out again."""

    def retire(self, space: Space) -> None:
        """Hand out ``space``, which is in use, no more once it comes back."""


_keepers: WeakSet[Keeper] = WeakSet()

# A child's memory is its own, and a lock of the parent's pools may have been held by a thread that the child lacks.
os.register_at_fork(after_in_child=_keepers.clear)


def register_keeper(keeper: Keeper) -> None:
    """Have ``trim(device)`` ask ``keeper`` for as long as it lives."""
    _keepers.add(keeper)


def retire(space: Space) -> None:
    """Have no Keeper hand out ``space`` again: others, whom nobody knows, may use its memory from now on."""
    for keeper in list(_keepers):
        if isinstance(keeper, SpaceKeeper):
            keeper.retire(space)


def trim(device: Device) -> int:
    """Give what the pools and workspaces of ``device`` hold unused back to it; returns the bytes given back.

    Waits for queued work on its memory first, as that keeps blocks from coming back.
    """
    given_back = 0
    finish(device)  # what was let go of while work on it was pending
    while freed := sum(keeper.trim() for keeper in list(_keepers) if keeper.device == device):
        given_back += freed  # and again: one may lie over another
    return given_back
