"""Guesses expected sizes for dimensions without a declared one, from the extents that are computed from them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from landbridge.sizes.size import Extent, Size, dimension, expected_size
from landbridge.sizes.terms import Symbol

#: What is left of a dimension, divided as often as it is, is so much often: tiles of kernels are full then.
FULL = 8
#: More is no division of a picture or a signal into steps: frames of sound begin every 160 or 512 samples, say.
_MOST_DIVIDED = 512
#: Far enough out that what is added, and the ends of ranges that begin at 1, do not count.
_LARGE = 1 << 16


def expected_sizes(extents: Iterable[Extent], fixed: Collection[str]) -> dict[str, Extent]:
    """Returns new dimensions, with larger expected sizes, for those of ``extents`` that are divided by a large number.

    Dimensions in ``fixed`` are left out. An expected size is chosen so that the largest quotient is ``FULL``. An image
    of W columns, of which a network makes W / 8 steps, often has more than eight steps.
    """
    divided: dict[Symbol, int] = {}
    for extent in dict.fromkeys(extents):  # many tensors have few different ones
        if isinstance(extent, Size):
            for symbol in extent.symbols.values():
                if symbol.name not in fixed and symbol.expected is None:
                    divided[symbol] = max(divided.get(symbol, 1), _divisor(extent, symbol))
    found: dict[str, Extent] = {}
    for symbol, by in divided.items():
        unit = symbol.unit
        wanted = -(-FULL * by // unit) * unit
        high = None if symbol.high is None else symbol.high * unit
        whole = dimension(symbol.name, symbol.low * unit, high, unit)
        if by > 1 and expected_size(whole) < wanted and (high is None or wanted <= high):
            found[symbol.name] = dimension(symbol.name, symbol.low * unit, high, unit, wanted)
    return found


def _divisor(extent: Size, symbol: Symbol) -> int:
    """Returns how many units of ``symbol`` make one of ``extent``; 1 if the extent grows faster, or not at all."""
    at = {name: max(s.low, 1) * s.unit for name, s in extent.symbols.items()}
    large = _LARGE // symbol.unit * symbol.unit
    grown = extent.at({**at, symbol.name: 2 * large}) - extent.at({**at, symbol.name: large})
    by = (large + grown // 2) // grown if 0 < grown < large else 1
    return by if by <= _MOST_DIVIDED else 1
