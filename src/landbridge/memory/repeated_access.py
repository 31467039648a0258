"""RepeatedAccess: an access of a device to the same bytes, which begins again with every run or copy."""

from __future__ import annotations

from landbridge.memory.backing import Backing
from landbridge.memory.coherence import before_device_access
from landbridge.memory.coherence_domain import CoherenceDomain
from landbridge.memory.storage import Storage


class RepeatedAccess:
    """An access of a device to ``start <= b < stop`` of ``storage``, which began before and begins again with each
    ``begin``; ``writes``: whether it writes the bytes.

    While the host writes nothing in between, and only the device sees the bytes past a cache, there is nothing to
    flush and nothing new to note, and ``begin`` makes sure of no more than that. Nothing is kept alive but the record
    of accesses.
    """

    __slots__ = ("_backing", "_domain", "_domains", "_range", "_start", "_stop", "_writes")

    def __init__(self, storage: Storage, start: int, stop: int, *, writes: bool) -> None:
        self._start, self._stop, self._writes = start, stop, writes
        self._domains, origin = storage.domains()
        #: None where each access takes the long way.
        self._backing: Backing | None = None
        self._domain: CoherenceDomain | None = None
        self._range = start, stop
        if len(self._domains) == 1 and (self._domains[0] is storage.domain or self._domains[0].device is None):
            backing, _ = storage.part()
            self._domain = domain = self._domains[0]
            self._range = domain.granules(origin + start, origin + stop)
            self._backing = backing if backing.domains is self._domains else None
        elif storage.domain is None and storage.has_record:
            backing, _ = storage.part()
            self._backing = None if backing.domains else backing

    @property
    def is_prepared(self) -> bool:
        """Returns whether the access may begin without any barrier."""
        backing, domain = self._backing, self._domain
        if backing is None or backing.merged is not None or backing.domains is not self._domains:
            return False
        return domain is None or (not domain.by_host and (not self._writes or domain.by_device.covers(*self._range)))

    @property
    def is_alone(self) -> bool:
        """Returns whether no work is queued on the memory, and one program alone is bound to it."""
        backing = self._backing
        return backing is not None and backing.merged is None and not backing.queued and len(backing.locks) == 1

    def begin(self, storage: Storage) -> None:
        """Call the barriers that are needed before the access begins again; ``storage`` is that of the first time."""
        if not self.is_prepared:
            before_device_access(storage, self._start, self._stop, writes=self._writes)
