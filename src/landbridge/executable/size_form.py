"""The text of a Size in a file, with the ranges of its dimensions: ``"W/8; W in 32..2560:8"``."""

from __future__ import annotations

from functools import lru_cache

from landbridge.errors import ShapeError
from landbridge.sizes.parsing import parse_range
from landbridge.sizes.printing import range_text
from landbridge.sizes.reading import read_parts
from landbridge.sizes.size import Extent, Size, dimensions_of
from landbridge.sizes.terms import Symbol

#: Characters of a Size.
_LONGEST = 1 << 16
#: Of one that is remembered, as a program has the same text in many places, and how many are.
_SHORT, _MOST = 4096, 1024
#: Sets of dimensions that are remembered, each with the parts of its sizes.
_SETS = 64


def size_text(size: Size) -> str:
    """Returns the text of ``size`` in a file: its expression, then the range of each of its dimensions. ``read_size``
    reads it back.
    """
    ranges = (f"{name} in {range_text(symbol)}" for name, symbol in size.symbols.items())
    return "; ".join((str(size), *ranges))


def read_size(text: str) -> Size:
    """Returns the Size that ``text`` spells. Raises ShapeError for text that spells none, is too long, or has no
    dimension.
    """
    if len(text) > _LONGEST:
        raise ShapeError(f"it has {len(text)} characters; legal: at most {_LONGEST}")
    return _remembered(text) if len(text) <= _SHORT else _read(text)


def _read(text: str) -> Size:
    written, *ranges = text.split("; ")
    symbols, parts = _declared(tuple(ranges))
    size = read_parts(written, symbols, {} if len(written) > _SHORT or len(parts) >= _MOST else parts)
    if not isinstance(size, Size):
        raise ShapeError("it depends on no dimension")
    return size


_remembered = lru_cache(_MOST)(_read)


@lru_cache(_SETS)
def _declared(ranges: tuple[str, ...]) -> tuple[dict[str, Symbol], dict[str, Extent]]:
    """Returns the dimensions that ``ranges`` declare, by name, and what is in brackets of sizes that were read with
    them, by its text.
    """
    declared = [parse_range(name, limits) for name, _, limits in (each.partition(" in ") for each in ranges)]
    return dimensions_of(declared), {}
