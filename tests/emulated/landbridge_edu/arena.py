"""First-fit allocation in one range of bytes."""

from __future__ import annotations

from landbridge.errors import OutOfMemoryError
from landbridge.process.locks import new_lock


class Arena:
    """``nbytes`` bytes, given out from the lowest hole that fits; any thread may ask."""

    def __init__(self, name: str, nbytes: int) -> None:
        self._name = name
        self._nbytes = nbytes
        self._taken: list[tuple[int, int]] = []  # sorted (begin, end)
        self._lock = new_lock()

    @property
    def free_bytes(self) -> int:
        """Bytes in no allocation."""
        with self._lock:
            return self._nbytes - sum(end - begin for begin, end in self._taken)

    def take(self, nbytes: int, alignment: int) -> int:
        """The offset of ``nbytes`` bytes (at least 1), aligned; raises OutOfMemoryError."""
        with self._lock:
            begin = 0
            for place, (taken, end) in enumerate([*self._taken, (self._nbytes, 0)]):
                if begin + max(nbytes, 1) <= taken:
                    self._taken.insert(place, (begin, begin + max(nbytes, 1)))
                    return begin
                begin = -(-end // alignment) * alignment
        raise OutOfMemoryError(
            f"{self._name}: no {nbytes} bytes aligned to {alignment}; {self.free_bytes} of {self._nbytes} are free, "
            "in parts; free tensors"
        )

    def give_back(self, begin: int) -> None:
        """Free what ``take`` gave at ``begin``."""
        with self._lock:
            self._taken = [taken for taken in self._taken if taken[0] != begin]
