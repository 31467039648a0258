"""Reads tables of a FlatBuffer in place."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from landbridge.errors import ImportModelError


class FlatTable:
    """The table at offset ``at`` of ``content``. Fields are numbered; one that is absent is 0, empty or None.

    Raises ImportModelError if an offset is outside of the bytes.
    """

    def __init__(self, content: memoryview, at: int) -> None:
        self._content, self._at = content, at
        begin = at - self._number("i", at)
        self._fields, self._size = begin + 4, (self._number("H", begin) - 4) // 2

    @classmethod
    def root(cls, content: memoryview) -> FlatTable:
        """Returns the root table of the buffer."""
        if len(content) < 8:
            raise ImportModelError("the file is cut short")
        return cls(content, struct.unpack_from("<I", content)[0])

    def number(self, field: int, kind: str = "q") -> Any:
        """Returns a scalar; ``kind`` is its letter in ``struct``."""
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
        """Returns a vector of scalars."""
        return [self._number(kind, location) for location in self._elements(field, struct.calcsize(kind))]

    def data(self, field: int) -> memoryview:
        """Returns a vector of bytes, as a view."""
        places = self._elements(field, 1)
        return self._content[places.start : places.stop]

    def _location(self, field: int) -> int:
        """Returns the offset of a field; 0 if it is absent."""
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
