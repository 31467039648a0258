"""Barriers around what code of the host does on bound memory that devices see past the host's caches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from landbridge.device.protocols import AccessMode
from landbridge.memory.accesses import open_views
from landbridge.memory.coherence import begin_host_access, end_host_access
from landbridge.tensor import Tensor
from landbridge.vm.bound_memory import BoundBytes, joined
from landbridge.vm.frame import Execute, Frame
from landbridge.vm.slot import Slot


@contextmanager
def host_access(slots: Iterable[Slot]) -> Iterator[None]:
    """Make what devices wrote to the inputs visible before the block, and what code wrote to the outputs after it.

    ``slots`` are of one program; an output in the memory of an input is one access. Memory that code of the host does
    not use in place, and memory without barriers, is left alone. Writes are flushed also when the block raises. Raises
    what barriers do.
    """
    begun: list[BoundBytes] = []
    seen = [slot for slot in slots if _is_seen(slot, slot.owner)]
    try:
        for access in joined(map(_access, seen)):
            begin_host_access(*access, seen[0].program)
            begun.append(access)
        yield
    finally:
        for access in begun:
            end_host_access(*access)


def execute_in_order(
    frame: Frame, execute: Execute, check_views: Callable[[], object], begun: Callable[[], object]
) -> None:
    """Execute while no program with another lock does that shares memory bound to ``frame``; calls ``begun``, and then
    ``check_views`` where host views are open, once no later work can come before it.
    """

    def checked() -> None:
        begun()
        if open_views:
            check_views()
        with host_access(frame.slots):
            execute()

    frame.entry.in_order(frame.orders(), checked)


def _access(slot: Slot) -> BoundBytes:
    """Returns what code of the host accesses of the Tensor that is bound to ``slot``."""
    tensor: Tensor = slot.owner
    start, stop = tensor.byte_range
    mode: AccessMode = "rw" if slot.partner is not None else "r" if slot.is_input else "w"
    return BoundBytes(tensor.storage, start, stop, mode)


def _is_seen(slot: Slot, owner: object) -> bool:
    """Returns whether code of the host uses ``owner`` in ``slot`` now, in memory with barriers.

    A call leaves the owner of the one before in the slot where its own argument needs no barriers.
    """
    return (
        slot.binding is None
        and isinstance(owner, Tensor)
        and bool(owner.storage.domains()[0])
        and slot.location(owner) == slot.address
    )
