"""The handles of ``sim:scratch``: bytes between guards, alone or many of them as the rows of one space."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np

#: What bytes hold that nobody wrote, and those that nobody may write.
POISON = 0xA5
#: Bytes of guard on each side: more than a vector, so that one that reaches over an end is seen.
GUARD_BYTES = 256


class Guarded:
    """``nbytes`` bytes, aligned, between guards; in a pitched one only the first ``row_bytes`` of every pitch count."""

    def __init__(
        self, whole: np.ndarray[Any, Any], offset: int, nbytes: int, row_bytes: int | None = None, pitch: int = 0
    ) -> None:
        self._around = whole[offset - GUARD_BYTES : offset + nbytes + GUARD_BYTES]
        self.data = whole[offset : offset + nbytes]
        self.address: int = self.data.ctypes.data
        self.row_bytes = nbytes if row_bytes is None else row_bytes
        self.pitch = pitch or nbytes or 1

    def holds(self, offset: int, nbytes: int) -> bool:
        """Returns whether ``nbytes`` bytes from ``offset`` on lie inside, and in one row unless rows are adjacent."""
        if offset < 0 or nbytes < 0 or offset + nbytes > self.data.nbytes:
            return False
        return self.row_bytes == self.pitch or offset % self.pitch + nbytes <= self.row_bytes

    def damaged(self) -> bool:
        """Returns whether a byte outside of the rows was written."""
        rows = self.data[: len(self.data) // self.pitch * self.pitch].reshape(-1, self.pitch)
        guards = (self._around[:GUARD_BYTES], self._around[-GUARD_BYTES:], rows[:, self.row_bytes :])
        return any((guard != POISON).any() for guard in guards)


class Handle:
    """The handle of a Space: a separate block, or a row of ``table``; ``charged`` bytes are freed with it."""

    def __init__(self, scope: str, block: Guarded | None, charged: int, table: Handle | None = None) -> None:
        self.scope = scope
        self.block = block
        self.charged = charged
        self.table = table
        self.rows: tuple[Handle, ...] = ()
        self.freed = False

    @property
    def is_freed(self) -> bool:
        """Returns whether the allocation that this is part of was given back."""
        return self.freed if self.table is None else self.table.freed

    def blocks(self) -> Iterator[Guarded]:
        """Yields the bytes of the allocation."""
        if self.block is not None:
            yield self.block
        for row in self.rows:
            yield from row.blocks()

    def __repr__(self) -> str:
        if self.table is not None:
            return f"row {self.table.rows.index(self)} of {self.table}"
        size = f"{self.block.data.nbytes} bytes" if self.block is not None else f"{len(self.rows)} rows"
        return f"{size} of {self.scope!r}"


def flat(scope: str, nbytes: int, alignment: int) -> Handle:
    """Makes one poisoned block."""
    return Handle(scope, _scattered([nbytes], alignment, Random(0))[0], nbytes)


def pitched(scope: str, rows: int, row_bytes: int, pitch: int, alignment: int) -> Handle:
    """Makes one poisoned block of rows that begin ``pitch`` bytes from each other."""
    nbytes = rows * pitch
    whole, offset = _poisoned(nbytes, alignment)
    return Handle(scope, Guarded(whole, offset, nbytes, row_bytes, pitch), nbytes)


def table(scope: str, rows: int, row_bytes: int, charged: int, alignment: int, random: Random) -> Handle:
    """Makes poisoned rows at separate locations, in an order of ``random``."""
    created = Handle(scope, None, charged)
    created.rows = tuple(
        Handle(scope, block, 0, created) for block in _scattered([row_bytes] * rows, alignment, random)
    )
    return created


def _poisoned(nbytes: int, alignment: int) -> tuple[np.ndarray[Any, Any], int]:
    """Returns poisoned bytes, and the offset at which ``nbytes`` aligned ones between guards begin."""
    whole = np.full(nbytes + alignment + 2 * GUARD_BYTES, POISON, np.uint8)
    return whole, GUARD_BYTES + -(whole.ctypes.data + GUARD_BYTES) % alignment


def _scattered(sizes: list[int], alignment: int, random: Random) -> list[Guarded]:
    """Returns a block for each of ``sizes``, all in one buffer, each between its own guards."""
    places = list(range(len(sizes)))
    random.shuffle(places)
    steps = [-(-(size + 2 * GUARD_BYTES) // alignment) * alignment for size in sizes]
    whole, first = _poisoned(sum(steps), alignment)
    found: dict[int, Guarded] = {}
    for number in places:
        found[number] = Guarded(whole, first, sizes[number])
        first += steps[number]
    return [found[number] for number in range(len(sizes))]
