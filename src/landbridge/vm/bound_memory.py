"""The memory that is bound to registers, of which an alias makes two registers one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from landbridge.device.protocols import AccessMode
from landbridge.memory.host_array import address_of
from landbridge.memory.storage import Storage
from landbridge.tensor import Tensor
from landbridge.vm.kernel_step import BoundTo
from landbridge.vm.program import BorrowedBytes


class BoundBytes(NamedTuple):
    """The bytes ``start <= b < stop`` of ``storage``, which the host accesses as ``mode`` says."""

    storage: Storage
    start: int
    stop: int
    mode: AccessMode


def is_one_memory(one: Any, other: Any) -> bool:
    """Returns whether ``one`` and ``other``, Tensors or arrays that are bound, begin at the same byte."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.storage is other.storage and one.byte_offset == other.byte_offset
    addresses = [address_of(each) for each in (one, other) if not isinstance(each, Tensor)]
    return len(addresses) == 2 and addresses[0] == addresses[1]


def bound_bytes(borrowed: Iterable[BorrowedBytes], bound_to: BoundTo) -> list[BoundBytes]:
    """Returns the bytes of ``borrowed`` in what is bound now; those that one memory has twice are joined."""
    found: list[BoundBytes] = []
    for each in borrowed:
        tensor: Tensor = bound_to(each.memory) if isinstance(each.memory, int) else each.memory
        storage, offset = tensor.storage, tensor.byte_offset
        found.append(BoundBytes(storage, offset + each.start, min(offset + each.stop, storage.nbytes), each.mode))
    return joined(found)


def joined(accesses: Iterable[BoundBytes]) -> list[BoundBytes]:
    """Returns ``accesses`` with those that overlap made one, which reads and writes where their modes differ.

    A barrier for a part of the bytes would otherwise discard what the other one has made visible.
    """
    found: list[BoundBytes] = []
    for each in accesses:
        merged = each
        for other in [o for o in found if o.storage is each.storage and o.start < each.stop and each.start < o.stop]:
            found.remove(other)
            mode: AccessMode = merged.mode if merged.mode == other.mode else "rw"
            merged = BoundBytes(each.storage, min(merged.start, other.start), max(merged.stop, other.stop), mode)
        found.append(merged)
    return found
