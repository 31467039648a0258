"""Staging: copies of arguments, to host memory and back for each execution, where code cannot use a device's memory.

It is only for programs compiled with ``on_mismatch="copy"``; the ledger shows each copy, cause ``on_mismatch``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from landbridge.tensor import Tensor
from landbridge.tensor.copy import copy_tensor
from landbridge.vm.lease import Lease
from landbridge.vm.slot import Slot

CAUSE = "on_mismatch"


class Staging:
    """The Tensors of devices that are bound through host memory: until unbound, or for one execution (``once``)."""

    def __init__(self, *, once: bool = False) -> None:
        self._pairs: dict[Slot, tuple[Tensor, Tensor]] = {}
        self._leases: dict[Slot, Lease | None] = {}
        self._once = once

    @staticmethod
    def needs(value: object) -> bool:
        """Returns whether ``value`` is memory that the host cannot use in place."""
        if not isinstance(value, Tensor):
            return False
        kind = value.storage.kind
        return kind.host_access != "read_write" or not kind.coherent

    def bind(self, slot: Slot, value: Tensor, memory: Tensor, lease: Lease | None = None) -> None:
        """Bind ``value`` through ``memory``, which executions use in its place; ``lease`` is kept alive."""
        self._pairs[slot], self._leases[slot] = (value, memory), lease

    def unbind(self, slot: Slot) -> None:
        """Stop staging ``slot``."""
        self._pairs.pop(slot, None)
        self._leases.pop(slot, None)

    def clear(self) -> None:
        """Stop staging all slots."""
        self._pairs.clear()
        self._leases.clear()

    def wrap(self, execute: Callable[[], object]) -> Callable[[], object]:
        """Returns ``execute`` wrapped in the copies to the host and back."""

        def staged() -> None:
            pairs = dict(self._pairs)
            if self._once:
                self.clear()
            _copy((memory, value) for slot, (value, memory) in pairs.items() if slot.is_input)
            execute()
            _copy((value, memory) for slot, (value, memory) in pairs.items() if not slot.is_input)

        return staged


def _copy(pairs: Iterable[tuple[Tensor, Tensor]]) -> None:
    for target, source in pairs:
        copy_tensor(target, source, cause=CAUSE)
        for tensor in (target, source):  # code ignores queues
            if tensor.storage.has_queued:
                tensor.storage.wait(*tensor.byte_range, writes=True)
