"""Who holds memory, for people and for the message when there is no more.

Nothing is kept for it: every object of the process is looked at, which takes as long as a garbage collection.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass

from landbridge.device.device import Device
from landbridge.memory.rows import held_bytes
from landbridge.memory.storage import Storage


@dataclass(frozen=True)
class Holder:
    """``nbytes`` of a Storage that the runtime allocated, and the Tensors, views and programs that use it, by name."""

    nbytes: int
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.nbytes} bytes by {' and '.join(self.names) or 'no tensor'}"


def holders(device: Device, scope: str) -> list[Holder]:
    """Every Storage of ``scope`` that is allocated, the largest first; borrowed memory is its owner's."""
    from landbridge.tensor.tensor import Tensor

    held = [
        known
        for known in gc.get_objects()
        if type(known) is Storage
        and (region := known.region) is not None
        and known.owner is None
        and (region.space.device, known.kind.scope) == (device, scope)
    ]
    found = []
    for storage in sorted(held, key=lambda storage: -held_bytes(storage)):
        tensors = {repr(known) for known in gc.get_referrers(storage) if type(known) is Tensor}
        names = storage.users or sorted(tensors)
        found.append(Holder(held_bytes(storage), tuple(names)))
    return found


def largest_holders(device: Device, scope: str, most: int = 5) -> str:
    """The ``most`` largest Storages of a scope and who uses them, in words."""
    held = holders(device, scope)
    total = sum(holder.nbytes for holder in held)
    largest = "; ".join(map(str, held[:most]))
    return f"{total} bytes are held by {len(held)} storages{', the largest: ' if largest else ''}{largest}"
