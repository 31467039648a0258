"""Addresses at which memory of this process lies twice: two of them may be the same byte.

``repeated_pages`` registers what it maps. Whoever compares addresses to find out whether memory is shared asks here;
while nothing is mapped twice, that costs one test.
"""

from __future__ import annotations

from weakref import finalize

#: The bytes of a half, by the address of the first, of each mapping that lives. Entries come and go by one call of a
#: dict, which no other thread can split.
_halves: dict[int, int] = {}


def register(base: int, half: int, owner: object) -> None:
    """Note that the ``half`` bytes from address ``base`` on follow there once more, for as long as ``owner`` lives."""
    _halves[base] = half
    finalize(owner, _halves.pop, base, None)


def shifts(one: int, other: int) -> tuple[int, ...]:
    """Returns by how much memory at address ``one`` may be moved to the addresses near ``other`` that are its bytes
    too; 0, which it always may, is the first.
    """
    if not _halves:
        return (0,)
    for base, half in _halves.copy().items():
        end = base + 2 * half
        if base <= one < end and base <= other < end:
            return 0, half, -half
    return (0,)
