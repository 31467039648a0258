"""OpenNumber: a number of one choice of sizes that remembers what it is for any other."""

from __future__ import annotations


class OpenNumber(int):
    """An int, the sum of the numbers in ``slots`` of Numbers and of ``more``; of sums alone it is remembered.

    What binds a program for one choice of sizes so makes words of which others know how they change.
    """

    slots: tuple[int, ...]
    more: int

    @classmethod
    def made(cls, number: int, slots: tuple[int, ...], more: int = 0) -> OpenNumber:
        """``number``, which is what ``slots`` and ``more`` are now."""
        made = cls(number)
        made.slots, made.more = slots, more
        return made

    def __add__(self, other: int) -> OpenNumber:
        if isinstance(other, OpenNumber):
            return self.made(int(self) + int(other), self.slots + other.slots, self.more + other.more)
        return self.made(int(self) + other, self.slots, self.more + other)

    __radd__ = __add__
