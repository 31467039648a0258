"""Staging: arguments on a device whose memory the code cannot use, copied to the host and back for each execution.

Only for programs compiled with ``on_mismatch="copy"``; the ledger shows each copy, cause ``on_mismatch``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from landbridge.tensor import Tensor
from landbridge.tensor.copy import copy_tensor
from landbridge.vm.slot import Lease, Slot

CAUSE = "on_mismatch"


class Staging:
    """Which Tensors of devices are bound by way of host memory: for runs, and for the call that is under way."""

    def __init__(self) -> None:
        self._runs: dict[Slot, tuple[Tensor, Tensor]] = {}
        self._leases: dict[Slot, Lease | None] = {}
        self._call: dict[Slot, tuple[Tensor, Tensor]] = {}

    @staticmethod
    def needs(value: object) -> bool:
        """Whether ``value`` is memory that the host cannot use in place."""
        if not isinstance(value, Tensor):
            return False
        kind = value.storage.kind
        return kind.host_access != "read_write" or not kind.coherent

    def bind(self, slot: Slot, value: Tensor, memory: Tensor, lease: Lease | None) -> None:
        """Let runs find ``value`` in ``memory``, and outputs arrive in it; ``lease`` keeps it from being freed."""
        self._runs[slot], self._leases[slot] = (value, memory), lease

    def unbind(self, slot: Slot) -> None:
        """Runs use the memory of what is bound."""
        self._runs.pop(slot, None)
        self._leases.pop(slot, None)

    def bind_call(self, slot: Slot, value: Tensor, memory: Tensor) -> None:
        """As ``bind``, for the next call alone."""
        self._call[slot] = (value, memory)

    def wrap(self, execute: Callable[[], object], *, call: bool) -> Callable[[], object]:
        """``execute`` between the copies to the host and those back."""

        def staged() -> None:
            pairs = dict(self._call if call else self._runs)
            self._call.clear()
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
