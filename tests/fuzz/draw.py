"""Values drawn from fuzz bytes: a missing byte reads as 0, so every input means something."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

#: Integers at which sizes, offsets and counts change their meaning.
EDGES = (0, 1, -1, 2, 3, 7, 8, 64, 127, 255, -128, 1 << 15, (1 << 31) - 1, -(1 << 31), 1 << 32, (1 << 62) - 1, 1 << 62,
         (1 << 63) - 1, -(1 << 63))  # fmt: skip


class Draw:
    """Reads ``data`` from its beginning."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def rest(self) -> bytes:
        """What was not read yet."""
        return self._data[self._at :]

    def byte(self) -> int:
        """0 to 255."""
        value = self._data[self._at] if self._at < len(self._data) else 0
        self._at += 1
        return value

    def below(self, bound: int) -> int:
        """0 to ``bound - 1``; uniform for a bound up to 256, coarser above."""
        value = self.byte() if bound <= 256 else self.byte() << 8 | self.byte()
        return value % bound

    def flag(self) -> bool:
        """One bit."""
        return bool(self.byte() & 1)

    def choice(self, values: Sequence[T]) -> T:
        """One of ``values``."""
        return values[self.below(len(values))]

    def int64(self) -> int:
        """Small mostly, sometimes one of ``EDGES``, sometimes any 64 bits with a sign."""
        kind = self.byte()
        if kind < 128:
            return kind % 16
        if kind < 200:
            return EDGES[kind % len(EDGES)]
        return int.from_bytes(bytes(self.byte() for _ in range(8)), "little", signed=True)

    def text(self) -> str:
        """A word: a length, then that many bytes as text."""
        length = self.below(24)
        return bytes(self.byte() for _ in range(length)).decode("utf-8", "surrogateescape")
