"""Staging: arguments on a device whose memory the code cannot use, copied to the host and back for each execution.

Only for programs compiled with ``on_mismatch="copy"``; the ledger shows each copy, cause ``on_mismatch``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from landbridge.tensor import Tensor
from landbridge.tensor.copy import copy_tensor
from landbridge.vm.lease import Lease
from landbridge.vm.slot import Slot

CAUSE = "on_mismatch"


class Staging:
    """Which Tensors of devices are bound by way of host memory: until unbound, or for one execution (``once``)."""

    def __init__(self, *, once: bool = False) -> None:
        self._pairs: dict[Slot, tuple[Tensor, Tensor]] = {}
        self._leases: dict[Slot, Lease | None] = {}
        self._once = once

    @staticmethod
    def needs(value: object) -> bool:
        """Whether ``value`` is memory that the host cannot use in place."""
        if not isinstance(value, Tensor):
            return False
        kind = value.storage.kind
        return kind.host_access != "read_write" or not kind.coherent

    def bind(self, slot: Slot, value: Tensor, memory: Tensor, lease: Lease | None = None) -> None:
        """Let executions find ``value`` in ``memory``, and outputs arrive in it; ``lease`` keeps it in being."""
        self._pairs[slot], self._leases[slot] = (value, memory), lease

    def unbind(self, slot: Slot) -> None:
        """Executions use the memory of what is bound."""
        self._pairs.pop(slot, None)
        self._leases.pop(slot, None)

    def clear(self) -> None:
        """Unbind all."""
        self._pairs.clear()
        self._leases.clear()

    def wrap(self, execute: Callable[[], object]) -> Callable[[], object]:
        """``execute`` between the copies to the host and those back."""

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
        for tensor in (target, source):  # code does not look at queues
            if tensor.storage.has_queued:
                tensor.storage.wait(*tensor.byte_range, writes=True)
