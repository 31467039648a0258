"""OpenNumber: a number of one choice of sizes that remembers what it is for any other."""

from __future__ import annotations

from collections.abc import Sequence


class OpenNumber(int):
    """An int, the sum of the numbers in ``slots`` of Numbers and of ``more``; of sums alone it is remembered.

    A slot ``~n`` is what slot ``n`` has, subtracted.

    What binds a program for one choice of sizes so makes words of which others know how they change.
    """

    slots: tuple[int, ...]
    more: int

    @classmethod
    def created(cls, number: int, slots: tuple[int, ...], more: int = 0) -> OpenNumber:
        """``number``, which is what ``slots`` and ``more`` are now."""
        created = cls(number)
        created.slots, created.more = slots, more
        return created

    def __add__(self, other: int) -> OpenNumber:
        if isinstance(other, OpenNumber):
            return self.created(int(self) + int(other), self.slots + other.slots, self.more + other.more)
        return self.created(int(self) + other, self.slots, self.more + other)

    __radd__ = __add__

    def __neg__(self) -> OpenNumber:
        return self.created(-int(self), tuple(~slot for slot in self.slots), -self.more)

    def at(self, extent_values: Sequence[int]) -> int:
        """What it is where the slots have ``extent_values``."""
        return self.more + sum(extent_values[slot] if slot >= 0 else -extent_values[~slot] for slot in self.slots)
