"""Pointers that an innermost loop carries from iteration to iteration, where instructions advance them for nothing.

An access of ARMv7's vectors has the address in one register and can add to it; it adds no other register and no
constant. If a loop computes addresses from its counter, each takes two or three instructions in each iteration. A
pointer that advances takes none, as the last access of an iteration adds the distance.
"""

from __future__ import annotations

from dataclasses import field

from landbridge.records import record

#: Bytes from the first access on that one pointer serves: accesses behind it add to its register one after another.
_REACH = 256
#: Of 16 registers, the stack pointer and the program counter are no pointers; bounds and distances take some.
_MOST = 9


@record
class PointerUse:
    """A use of a pointer by an access: the line that defines ``name``, ``offset`` bytes behind the pointer.

    ``in_body``: it happens in each iteration.
    """

    line: int
    name: str
    offset: int
    in_body: bool


@record
class Carried:
    """A pointer: ``name`` in the loop, ``first`` before it, and the bytes ``advance`` that an iteration adds, a name or
    a number. ``start`` is how many bytes behind its base it is. ``uses``: in order. ``following``: its value in the
    next iteration, where that is computed with the loop's body; else "".
    """

    name: str
    first: str
    advance: str
    start: int
    uses: list[PointerUse] = field(default_factory=list)
    following: str = ""


@record
class Advancing:
    """The pointers of a loop whose ``counter`` begins at ``lower`` and grows by ``step``, by their bases."""

    counter: str
    lower: str
    step: int
    pointers: dict[str, list[Carried]] = field(default_factory=dict)

    def sharing(self, base: str, offset: int) -> Carried | None:
        """Returns the pointer that an access ``offset`` bytes behind ``base`` can share; None if there is none."""
        return next((c for c in self.pointers.get(base, ()) if 0 <= offset - c.start < _REACH), None)

    @property
    def is_full(self) -> bool:
        """Whether further pointers would leave no registers."""
        return len(self.all()) >= _MOST

    def add(self, base: str, carried: Carried) -> None:
        """Adds a pointer whose base is ``base``."""
        self.pointers.setdefault(base, []).append(carried)

    def all(self) -> list[Carried]:
        """Returns the pointers, those of a base one after another."""
        return [each for found in self.pointers.values() for each in found]
