"""A list of who holds memory, for people and for the error when memory runs out.

Nothing is recorded for it: every object of the process is visited, which takes as long as a garbage collection.
"""

from __future__ import annotations

import gc
from typing import NamedTuple, TypeVar

from landbridge.device.api import Device, NdSpace
from landbridge.memory.storage import Storage

_Kind = TypeVar("_Kind", bound=type)


class Holder(NamedTuple):
    """``nbytes`` of a Storage that the runtime allocated, with the names of the Tensors, views and programs that use
    it.
    """

    nbytes: int
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.nbytes} bytes by {' and '.join(self.names) or 'no tensor'}"


_named: set[type] = set()


def named_holder(kind: _Kind) -> _Kind:
    """Decorate a class whose objects refer to a Storage: ``holders`` names each by its ``repr``."""
    _named.add(kind)
    return kind


def holders(device: Device, scope: str) -> list[Holder]:
    """Returns every allocated Storage of ``scope``, the largest first; borrowed memory is not among them."""
    held = [
        known
        for known in gc.get_objects()
        if type(known) is Storage
        and (region := known.region) is not None
        and known.owner is None
        and (region.space.device, known.kind.scope) == (device, scope)
    ]
    found = []
    for storage in sorted(held, key=lambda storage: -_held_bytes(storage)):
        views = {repr(known) for known in gc.get_referrers(storage) if type(known) in _named}
        names = storage.users or sorted(views)
        found.append(Holder(_held_bytes(storage), tuple(names)))
    return found


def largest_holders(device: Device, scope: str, most: int = 5) -> str:
    """Returns a text of the ``most`` largest Storages of a scope and their users."""
    held = holders(device, scope)
    total = sum(holder.nbytes for holder in held)
    largest = "; ".join(map(str, held[:most]))
    return f"{total} bytes are held by {len(held)} storages{', the largest: ' if largest else ''}{largest}"


def _held_bytes(storage: Storage) -> int:
    """Returns the bytes that ``storage`` holds, without the gaps that are counted between rows of a table."""
    space = storage.live_region.space
    if isinstance(space, NdSpace) and space.rows is not None:
        return space.physical_shape[0] * space.row_bytes
    return storage.nbytes
