"""Tables of a FlatBuffer, read in place."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from landbridge.errors import ImportModelError


class FlatTable:
    """A table at ``at`` of ``content``; its fields have numbers, and one that is left out is 0, empty or None.

    Raises ImportModelError where the bytes point outside of themselves.
    """

    def __init__(self, content: memoryview, at: int) -> None:
        self._content, self._at = content, at
        begin = at - self._number("i", at)
        self._fields, self._size = begin + 4, (self._number("H", begin) - 4) // 2

    @classmethod
    def root(cls, content: memoryview) -> FlatTable:
        """The table that the buffer is."""
        if len(content) < 8:
            raise ImportModelError("the file is cut short")
        return cls(content, struct.unpack_from("<I", content)[0])

    def number(self, field: int, kind: str = "q") -> Any:
        """A scalar, of a kind that ``struct`` has a letter for."""
        location = self._location(field)
        return self._number(kind, location) if location else 0

    def text(self, field: int) -> str:
        location = self._location(field)
        return self._text(location) if location else ""

    def table(self, field: int) -> FlatTable | None:
        location = self._location(field)
        return FlatTable(self._content, self._pointed(location)) if location else None

    def tables(self, field: int) -> Iterator[FlatTable]:
        for location in self._elements(field, 4):
            yield FlatTable(self._content, self._pointed(location))

    def texts(self, field: int) -> list[str]:
        return [self._text(location) for location in self._elements(field, 4)]

    def values(self, field: int, kind: str = "q") -> list[Any]:
        """A vector of scalars."""
        return [self._number(kind, location) for location in self._elements(field, struct.calcsize(kind))]

    def data(self, field: int) -> memoryview:
        """A vector of bytes, as a view of them."""
        places = self._elements(field, 1)
        return self._content[places.start : places.stop]

    def _location(self, field: int) -> int:
        """Where a field lies; 0 where it is left out."""
        if field >= self._size:
            return 0
        offset = self._number("H", self._fields + 2 * field)
        return self._at + offset if offset else 0

    def _elements(self, field: int, size: int) -> range:
        location = self._location(field)
        if not location:
            return range(0)
        begin = self._pointed(location)
        count = self._number("I", begin)
        if begin + 4 + count * size > len(self._content):
            raise ImportModelError("a list in the file is longer than the file; it is cut short")
        return range(begin + 4, begin + 4 + count * size, size)

    def _text(self, location: int) -> str:
        begin = self._pointed(location)
        return bytes(self._content[begin + 4 : begin + 4 + self._number("I", begin)]).decode()

    def _pointed(self, location: int) -> int:
        return location + int(self._number("I", location))

    def _number(self, kind: str, location: int) -> Any:
        try:
            return struct.unpack_from(f"<{kind}", self._content, location)[0]
        except struct.error as error:
            raise ImportModelError(f"the file points outside of itself, at byte {location}; it is cut short") from error
