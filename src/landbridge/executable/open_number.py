"""OpenNumber: an int for one choice of sizes that remembers how to compute it for any other."""

from __future__ import annotations

from collections.abc import Sequence


class OpenNumber(int):
    """An int, the sum of the values in ``slots`` and of ``more``; only sums keep this form.

    A slot ``~n`` subtracts the value of slot ``n``. Code that binds a program for one choice of sizes uses it to find
    out which words change with the sizes, and how.
    """

    slots: tuple[int, ...]
    more: int

    @classmethod
    def created(cls, number: int, slots: tuple[int, ...], more: int = 0) -> OpenNumber:
        """Makes an OpenNumber of value ``number``, the present sum of ``slots`` and ``more``."""
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
        """Returns its value where the slots have ``extent_values``."""
        return self.more + sum(extent_values[slot] if slot >= 0 else -extent_values[~slot] for slot in self.slots)
