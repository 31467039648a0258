"""Accesses of a tile that are contiguous along the rows: blocks of rows and lanes are loaded or stored transposed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from xdsl.ir import SSAValue

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.code import Code, Index, Where, zero
from landbridge.passes.lower.cost import ELEMENTWISE
from landbridge.passes.lower.transposed import interleaved, parted, transpose_in, transpose_out, transposed_width
from landbridge.sizes.size import same

#: A loop, and an offset that is added to its index.
Shift: TypeAlias = tuple[int, Index]
#: Returns the location of the first row and lane of a block after a shift.
Location: TypeAlias = Callable[[Shift], Where]


class TransposedBlocks:
    """Emits transposed accesses; vectors of ``lanes`` lie along loop ``lane``, and ``rows`` is the loop of the rows.

    A block has ``count`` rows, and ``active`` lanes (0 for all); an open number of active lanes is between 1 and all.
    If the rows of one lane directly follow those of the previous lane, whole vectors are loaded; otherwise one vector
    for each lane.
    """

    def __init__(self, code: Code, lane: int, lanes: int, m_dim: int) -> None:
        self._code, self._lane, self._lanes, self._m_dim = code, lane, lanes, m_dim

    def load(self, a: ElementAccess, buffer: SSAValue, location: Location, count: int, active: Index) -> list[SSAValue]:
        """Load the rows; returns a vector along the lanes for each."""
        code, lanes = self._code, self._lanes
        if self._is_dense(a, count):
            parts = self._dense_parts(location, count, active)
            loaded = [code.load_vector(buffer, where, a.element, lanes, some) for where, some in parts]
            return parted(code, loaded + [code.splat(zero(a.element), a.element, lanes)] * (count - len(loaded)))
        width = transposed_width(count, lanes, a.element)
        places = self._lane_locations(location, active)
        loaded = [code.load_vector(buffer, where, a.element, width, count % width) for where in places]
        return transpose_in(code, loaded + [code.splat(zero(a.element), a.element, width)] * (lanes - len(loaded)))

    def store(
        self, a: ElementAccess, rows: list[SSAValue], buffer: SSAValue, location: Location, active: Index
    ) -> None:
        """Store the rows."""
        code, count = self._code, len(rows)
        if self._is_dense(a, count):
            parts = self._dense_parts(location, count, active)
            for (where, some), value in zip(parts, interleaved(code, rows), strict=False):
                code.store_vector(value, buffer, where, self._lanes, some)
            return
        width = transposed_width(count, self._lanes, a.element)
        stored = zip(self._lane_locations(location, active), transpose_out(code, rows, width), strict=False)
        # lanes after the last active one have its location, and are overwritten by it
        for where, value in reversed(list(stored)):
            code.store_vector(value, buffer, where, width, count % width)

    def _is_dense(self, a: ElementAccess, count: int) -> bool:
        return count <= ELEMENTWISE.parted_rows and same(a.index.coeff(self._lane), count) is True

    def _dense_parts(self, location: Location, count: int, active: Index) -> Iterator[tuple[Where, Index]]:
        """Yields the location of each vector of a dense block, and its number of active elements, 0 for all."""
        for start in range(0, count * self._lanes, self._lanes):
            if not isinstance(active, int):
                yield location((self._m_dim, start)), self._code.add(self._code.mul(active, count), -start)
            elif not active or active * count >= start + self._lanes:
                yield location((self._m_dim, start)), 0
            elif active * count > start:
                yield location((self._m_dim, start)), active * count - start

    def _lane_locations(self, location: Location, active: Index) -> list[Where]:
        """Returns the location of the first row of each active lane; if their number is open, the others have that of
        the last.
        """
        if isinstance(active, int):
            return [location((self._lane, at)) for at in range(active or self._lanes)]
        last = self._code.add(active, -1)
        return [location((self._lane, self._code.minimum(last, at))) for at in range(self._lanes)]
