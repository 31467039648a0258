"""Sorts rows by a network of comparisons that is the same for all data: Batcher's bitonic sort ("Sorting networks and
their applications", 1968).

A row of 2**m positions is a matrix of columns: position ``c * height + h`` is in row h, column c. Neighbouring columns
are neighbours in memory, so that two elements that one comparison uses are at least a whole vector apart. The matrix is
transposed only to compare elements of different columns. Each iteration of a stage compares all pairs whose positions
differ in one bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from landbridge.ir.prim_builder import Access, PrimBuilder
from landbridge.ir.scalar_dtypes import bits_of
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ops.context import BodyBuffer, OpContext
from landbridge.ops.slicing import index_within
from landbridge.records import record
from landbridge.sizes.size import Extent

#: The number of columns: the lanes of the widest vectors of 32-bit elements.
_COLUMNS = 16
#: The position of padding, which is sorted after all elements.
_NONE = 2**31 - 1
#: Returns the key of an element.
Key: TypeAlias = Callable[[ScalarBuilder, Value], Value]
#: Returns whether key ``a`` at position ``a_at`` comes before ``b`` at ``b_at``: ``before(s, a, a_at, b, b_at)``.
Before: TypeAlias = Callable[[ScalarBuilder, Value, Value, Value, Value], Value]


@record(frozen=True)
class Sorting:
    """``rows`` of ``extent`` elements, of which the first ``count`` in order are wanted.

    They are ordered by keys, integers of ``dtype`` in ascending order, and by positions, of dtype ``at``.
    """

    rows: Sequence[Extent]
    extent: int
    count: Extent
    dtype: str
    at: str
    before: Before

    @property
    def height(self) -> int:
        """Returns rows of the matrix: a power of two."""
        return max(1 << (-(-self.extent // _COLUMNS) - 1).bit_length(), 2)


@record(frozen=True)
class SortPhase:
    """Iterations whose pairs are in one column of the matrix, or, with ``across``, in one row of it.

    ``distance`` is the number of positions along that axis between the two elements of a pair, for each iteration. A
    pair is sorted in descending order if its position along the axis has the bit ``owned`` of the iteration, or along
    the other axis the bit ``other`` (0 for none), but not if it has both.
    """

    across: bool
    distance: tuple[int, ...]
    owned: tuple[int, ...]
    other: int = 0

    @property
    def iterations(self) -> int:
        """Returns the number of iterations."""
        return len(self.distance)

    @property
    def table(self) -> np.ndarray[tuple[int, int], np.dtype[np.int32]]:
        """Returns ``distance`` and ``owned`` of each iteration."""
        return np.array(list(zip(self.distance, self.owned, strict=True)), np.int32)


def phases(height: int, columns: int) -> list[SortPhase]:
    """Returns the network for ``height * columns`` positions, both powers of two.

    Longer and longer runs of positions are sorted, every second one in descending order: first within columns, then
    whole columns.
    """
    runs = [2 << level for level in range(height.bit_length() - 2)]
    within = [(distance, run) for run in runs for distance in _halves(run)]
    merges = (
        [SortPhase(False, tuple(distance for distance, _ in within), tuple(run for _, run in within))] if within else []
    )
    for run in (1 << level for level in range(columns.bit_length())):
        way = run if run < columns else 0
        if run > 1:
            merges.append(SortPhase(True, _halves(run), (way,) * len(_halves(run))))
        merges.append(SortPhase(False, _halves(height), (0,) * len(_halves(height)), way))
    return merges


def _halves(run: int) -> tuple[int, ...]:
    """Returns half of ``run``, a quarter, and so on to 1."""
    return tuple(run >> bit for bit in range(1, run.bit_length()))


def sorted_rows(c: OpContext, operands: Sequence[SSAValue], sorting: Sorting, key: Key) -> SSAValue:
    """Returns the positions of the first ``count`` elements of each row, in order.

    ``operands`` are elements [rows, extent], whose keys are ``key(s, element)``, and their positions, negative for
    padding. Without positions, these are the indices in the row.
    """
    network = phases(sorting.height, _COLUMNS)
    tables = [c.value(phase.table) for phase in network]

    def build(p: PrimBuilder) -> None:
        _Writer(p, sorting, network).write(len(operands), key)

    rows, height = sorting.rows, sorting.height
    upright, lying = (2, *rows, height, _COLUMNS), (2, *rows, _COLUMNS, height)
    kinds = (sorting.dtype, sorting.at)
    outputs: list[tuple[Sequence[Extent], str]] = [((*rows, sorting.count), sorting.at)]
    outputs += [(shape, kind) for shape in (upright, lying) for kind in kinds]
    return c.g.call("sort", [*operands, *tables], outputs, build)[0]


class _Writer:
    """Writes the stages. Keys and positions have two buffers each; an iteration reads one and writes the other."""

    def __init__(self, p: PrimBuilder, sorting: Sorting, network: Sequence[SortPhase]) -> None:
        self.p, self.sorting, self.network, self.n = p, sorting, network, len(sorting.rows)
        self.upright, self.lying = p.outputs[1:3], p.outputs[3:5]

    def write(self, given: int, key: Key) -> None:
        """Writes all stages, for the ``given`` operands and a table for each phase."""
        self._fill(self.p.inputs[:given], key)
        half, standing = 0, True
        for phase, table in zip(self.network, self.p.inputs[given:], strict=True):
            if standing is phase.across:
                self._transpose(half, standing)
                half, standing = 0, not standing
            self._iterations(phase, table, half)
            half = (half + phase.iterations) % 2
        if not standing:
            self._transpose(half, standing)
            half = 0
        self._result(half)

    def _fill(self, given: Sequence[SSAValue], key: Key) -> None:
        """Fills the matrix with the elements, and the rest with a key that sorts last."""
        n, s_, extent = self.n, self.sorting, self.sorting.extent
        buffers = [BodyBuffer(b, self.p.dtype(b)) for b in given]

        def location(s: ScalarBuilder) -> list[Value]:
            at = s.cast(s.index(n), "int64") * _COLUMNS + s.cast(s.index(n + 1), "int64")
            row, inside = [s.index(i) for i in range(n)], at < extent
            which = index_within(s, at, extent)
            position = s.cast(at, s_.at)
            if len(buffers) > 1:
                position = buffers[1].load(s, [*row, which])
                inside = inside & (position >= 0)
            last = (1 << bits_of(s_.dtype) - 1) - 1
            number = s.select(inside, key(s, buffers[0].load(s, [*row, which])), last)
            return [number, s.select(inside, position, _NONE)]

        outs = [(b, lambda *d: [0, *d]) for b in self.upright]
        self.p.generic("p" * (n + 2), [*s_.rows, s_.height, _COLUMNS], [], outs, location)

    def _transpose(self, half: int, standing: bool) -> None:
        n, height = self.n, self.sorting.height
        source, target = (self.upright, self.lying) if standing else (self.lying, self.upright)
        extents = [_COLUMNS, height] if standing else [height, _COLUMNS]
        for a, b in zip(source, target, strict=True):
            read = (a, lambda *d: [half, *d[:n], d[n + 1], d[n]])
            self.p.generic("p" * (n + 2), [*self.sorting.rows, *extents], [read], [(b, lambda *d: [0, *d])], _same)

    def _iterations(self, phase: SortPhase, table: SSAValue, half: int) -> None:
        """Compares every position with its partner in iteration t: of each pair one keeps what sorts first."""
        n, height, p = self.n, self.sorting.height, self.p
        extents = [_COLUMNS, height] if phase.across else [height, _COLUMNS]
        before = self.sorting.before

        def iteration(table: SSAValue, keys: SSAValue, positions: SSAValue) -> None:
            sources = [BodyBuffer(b, p.dtype(b)) for b in (keys, positions)]

            def exchange(s: ScalarBuilder, key: Value, at: Value, distance: Value, owned: Value) -> list[Value]:
                line = s.cast(s.index(n + 1), "int32")
                partner = index_within(s, line ^ distance, extents[0])
                read = index_within(s, s.binary("rem", s.index(0) + half, 2), 2)
                where = [read, *(s.index(1 + i) for i in range(n)), partner, s.index(n + 2)]
                key2, at2 = (b.load(s, where) for b in sources)
                keeps = before(s, key, at, key2, at2) ^ (line & distance).ne(0) ^ (line & owned).ne(0)
                if phase.other:
                    keeps = keeps ^ (s.cast(s.index(n + 2), "int32") & phase.other).ne(0)
                return [s.select(keeps, key, key2), s.select(keeps, at, at2)]

            shape = [phase.iterations, *self.sorting.rows, *extents]
            reads: list[Access] = [(b, lambda t, *d: [(t + half) % 2, *d]) for b in (keys, positions)]
            reads += [(table, lambda t, *d: [t, 0]), (table, lambda t, *d: [t, 1])]
            outs: list[Access] = [(b, lambda t, *d: [(t + (half + 1)) % 2, *d]) for b in (keys, positions)]
            p.generic("p" * (n + 3), shape, reads, outs, exchange)

        p.steps(phase.iterations, [table, *(self.lying if phase.across else self.upright)], iteration)

    def _result(self, half: int) -> None:
        """Stores the positions of the first elements, column by column."""
        n, height = self.n, self.sorting.height
        positions = BodyBuffer(self.upright[1], self.sorting.at)

        def first(s: ScalarBuilder) -> Value:
            location = s.cast(s.index(n), "int64")
            row = index_within(s, s.binary("rem", location, height), height)
            column = index_within(s, s.binary("div", location, height), _COLUMNS)
            found = positions.load(s, [s.const(half, "index"), *(s.index(i) for i in range(n)), row, column])
            return s.select(found.eq(_NONE), -1, found)

        out: Access = (self.p.outputs[0], lambda *d: d)
        self.p.generic("p" * (n + 1), [*self.sorting.rows, self.sorting.count], [], [out], first)


def _same(s: ScalarBuilder, v: Value) -> Value:
    return v
