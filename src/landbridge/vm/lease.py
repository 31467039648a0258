"""Leases: entries in a Storage for as long as a program uses its bytes."""

from __future__ import annotations

from landbridge.memory.storage import Storage
from landbridge.tensor import Tensor
from landbridge.vm.entry import Entry


class Lease:
    """An entry in a Storage's list of users for as long as it lives: ``subject`` uses the bytes for its owner."""

    __slots__ = ("__weakref__", "_subject")

    def __init__(self, storage: Storage, subject: str) -> None:
        self._subject = subject
        storage.add_export(self)
        storage.live_region  # noqa: B018  raises when freed meanwhile

    def __str__(self) -> str:
        return self._subject


class SlotUse:
    """Whether runs write what is bound to a slot, or a copy is writing it now."""

    __slots__ = ("writes",)

    def __init__(self, writes: bool) -> None:
        self.writes = writes


class Tenancy(Lease):
    """A Lease of ``tensor``, which runs of ``program`` use as ``use`` says.

    ``may_write``: whether they ever write; ``in_place``: whether code of the host uses it.
    """

    __slots__ = ("_high", "_low", "_use", "in_place", "may_write", "program")

    def __init__(
        self, tensor: Tensor, subject: str, program: Entry, use: SlotUse, *, may_write: bool, in_place: bool
    ) -> None:
        super().__init__(tensor.storage, subject)
        self.program, self.may_write, self.in_place, self._use = program, may_write, in_place, use
        self._low, self._high = tensor.byte_range
        tensor.storage.add_tenant(self)

    def conflicts(self, start: int, stop: int, writes: bool) -> bool:
        """Returns whether an access of that range of the Storage must not happen during a run."""
        return (writes or self._use.writes) and start < self._high and self._low < stop
