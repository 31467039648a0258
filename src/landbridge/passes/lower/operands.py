"""Reads and writes elements of a register tile: indices, shared loads, stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from xdsl.dialects import vector
from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from landbridge.errors import CodegenError
from landbridge.ir.types import shape_of
from landbridge.passes.lower.access import ElementAccess, Guard, Linear
from landbridge.passes.lower.body import emit_body
from landbridge.passes.lower.code import Code, Index, Where, zero
from landbridge.passes.lower.cost import ELEMENTWISE
from landbridge.passes.lower.guards import LoopRanges
from landbridge.passes.lower.image_memory import copy_pixel, is_image, lane_at, pixel_location
from landbridge.passes.lower.lane_body import LaneBody, computes_indices
from landbridge.passes.lower.lane_vectors import Ends, LaneVector, moved
from landbridge.passes.lower.lane_walk import Walk, walk_of
from landbridge.passes.lower.nest import Stage
from landbridge.passes.lower.peeling import LoopPiece, PeeledIterations
from landbridge.passes.lower.row_memory import in_rows, split
from landbridge.passes.lower.schedule import Schedule
from landbridge.passes.lower.straight_line import (
    LoadNumber,
    LoadNumbers,
    Picked,
    TransposedRow,
    Unrolled,
    interleaved_vectors,
    merged_scalars,
    transposed_rows,
)
from landbridge.passes.lower.transposed import (
    gathered,
    interleaved,
    load_transposed,
    store_transposed,
)
from landbridge.records import record
from landbridge.sizes.size import Extent, same

#: A loop, and an offset that is added to its index.
Shift: TypeAlias = tuple[int, Index]
#: A copy of an unrolled body: the row and column of its tile, and how far a loop has moved on in its iteration.
Copy: TypeAlias = tuple[int, int, tuple[int, int] | None]


@record(frozen=True)
class Tile:
    """A register tile: its first row and column, and their numbers.

    Rows count iterations; columns count vectors if they are the lane loop, else iterations. ``m_mask`` and
    ``n_mask`` are the active lanes of the last vector (0 for all); an SSA value is the number of elements left,
    which may exceed the tile. Rows before ``first_new`` were stored by another tile and are not stored again.

    Rows may leave out padded iterations of reduction loops. ``pieces``: those of a tile whose first row is known, for
    each loop; ``peeled``: a loop whose bounds depend on the row.
    """

    m_start: Index
    m_size: int
    n_start: Index
    n_size: int
    m_mask: Index = 0
    n_mask: Index = 0
    first_new: Index | None = None
    pieces: tuple[LoopPiece, ...] = ()
    peeled: PeeledIterations | None = None

    def has_pieces_of(self, d: int) -> bool:
        """Returns whether ``pieces`` say which iterations of reduction loop ``d`` each row executes."""
        return any(p.dim == d for p in self.pieces)

    def executes(self, row: int, d: int, iteration: int) -> bool:
        """Returns whether ``row`` of the tile executes ``iteration`` of reduction loop ``d``, of which it has
        ``pieces``.
        """
        return any(p.dim == d and p.low <= iteration < p.high and row in p.rows for p in self.pieces)


class Operands:
    """Reads and writes elements of tiles. ``env`` holds the indices of the loops around the current code, and ``known``
    what is known of them; a padded read tests the other guards.
    """

    def __init__(
        self,
        code: Code,
        sched: Schedule,
        buffers: Mapping[SSAValue, SSAValue],
        env: dict[int, Index],
        known: LoopRanges,
    ) -> None:
        self.code, self.sched, self.buffers, self.env, self.known = code, sched, buffers, env, known
        self.lanes = sched.lanes if sched.lane is not None else 1
        #: For memory that holds only a part of the elements that its accesses index: the index of the first one.
        self.origins: dict[SSAValue, Index] = {}
        self._loops = tuple(
            None if d is None else Unrolled(d, self.lanes if d == sched.lane else 1) for d in (sched.m_dim, sched.n_dim)
        )
        #: The value numbers of the loads of the current block.
        self._numbers = self._number_block()
        #: What the block has loaded: by number, and vectors that others are picked from by their first number and
        #: position.
        self._loads: dict[LoadNumber | tuple[LoadNumber, int], SSAValue] = {}
        #: Loads before a loop, which all of its iterations use.
        self._retained: dict[LoadNumber | tuple[LoadNumber, int], SSAValue] = {}
        #: How loads of the block are merged, and the copy of the body that has each of their numbers.
        self._merged: dict[LoadNumber, Picked | TransposedRow] = {}
        self._copies: dict[LoadNumber, Copy] = {}
        #: Rows of a transposed block that are collected for a store, by access and column.
        self._collected: dict[tuple[ElementAccess, int], list[SSAValue]] = {}
        #: The elements of an incomplete pixel, by the access that writes them.
        self._lanes: dict[ElementAccess, list[SSAValue]] = {}
        #: Cached facts about accesses and stages.
        self._walks: dict[ElementAccess, Walk] = {}
        self._places: dict[Stage, bool] = {}

    def forget(self) -> None:
        """Start a new block of straight-line code: the loads of other blocks are not visible in it."""
        self._numbers = self._number_block()
        self._loads, self._merged, self._copies, self._collected = dict(self._retained), {}, {}, {}

    def _number_block(self) -> LoadNumbers:
        return LoadNumbers(self._loops, self.known.holds, self.sched.lane, memory_scalars=self.sched.iterations == 1)

    def merge(self, reads: Iterable[ElementAccess], t: Tile, copies: Sequence[Copy], scalars: int = 0) -> None:
        """Let loads of the current block share vectors: those of ``reads`` in all ``copies`` of the body.

        Scalars become lanes of vectors of ``scalars`` if that is not 0, and vectors with a stride are shuffled from
        contiguous ones.
        """
        for a in reads:
            if is_image(self.buffers[a.buffer].type):
                continue
            numbers = {self.number(a, t, copy): copy for copy in reversed(copies)}
            self._copies |= numbers
            stride = 0 if self.sched.lane is None else a.index.coeff(self.sched.lane)
            match self.walk(a):
                case Walk.STAYS if scalars:
                    self._merged |= merged_scalars(numbers, scalars)
                case Walk.STRIDED if all(self.known.holds(g) for g in a.guards):
                    full = [number for number, copy in numbers.items() if self._active(t, *copy[:2]) == 0]
                    self._merged |= interleaved_vectors(full, stride, self.lanes)
                case Walk.TRANSPOSED:
                    if self._is_dense(a, len(numbers)):
                        self._merged |= interleaved_vectors(numbers, len(numbers), self.lanes)
                    else:
                        self._merged |= transposed_rows(numbers)

    def retain(self) -> None:
        """Let ``forget`` keep the loads that were made since it was called last, until ``release``."""
        self._retained = dict(self._loads)

    def release(self) -> None:
        """Forget all loads, those that were retained included."""
        self._retained = {}
        self.forget()

    def _dim(self, d: int, t: Tile, m: int, n: int) -> tuple[Index, int]:
        """Returns the index of loop ``d`` at element (m, n) of the tile, as a base and a constant offset."""
        lanes = self.lanes
        if d == self.sched.m_dim:
            if d == self.sched.lane:
                return self.code.mul(t.m_start, lanes), m * lanes
            return t.m_start, m
        if d == self.sched.n_dim:
            if d == self.sched.lane:
                return self.code.mul(t.n_start, lanes), n * lanes
            return t.n_start, n
        if d == self.sched.lane and d not in self.env:
            return 0, 0
        return self.env[d], 0

    def index(self, x: Linear, t: Tile, m: int, n: int, shift: Shift | None = None, lane: Index = 0) -> Index:
        """Returns ``x`` at element (m, n) of the tile, ``lane`` lanes further on."""
        code = self.code
        base: Index = 0
        distance: Extent = 0
        shifts = [] if shift is None else [shift]
        if self.sched.lane is not None and not (isinstance(lane, int) and lane == 0):
            shifts.append((self.sched.lane, lane))

        def shifted(d: int) -> tuple[Index, Extent]:
            start: Index
            offset: Extent
            start, offset = self._dim(d, t, m, n)
            for loop, by in shifts:
                if loop == d:
                    start, offset = (code.add(start, by), offset) if isinstance(by, SSAValue) else (start, offset + by)
            return start, offset

        for d, c in x.coeffs.items():
            start, offset = shifted(d)
            base = code.add(base, code.mul(start, c))
            distance += c * offset

        def dim(d: int) -> Index:
            return code.add(*shifted(d))

        for s, e in x.rest:
            base = code.add(base, code.mul(code.affine(e, dim), s))
        # Last, as all rows and columns share the constant, which may be a word; their distances are immediate operands.
        return code.add(code.add(base, x.const), distance)

    def where(self, a: ElementAccess, t: Tile, m: int, n: int, shift: Shift | None = None, lane: Index = 0) -> Where:
        """Returns the location of an access, ``lane`` lanes further on: its element, or row and column."""
        if not in_rows(a.buffer.type):
            at = self.index(a.index, t, m, n, shift, lane)
            return self.code.add(at, self.code.mul(self.origins.get(a.buffer, 0), -1))
        row, column = split(a.index)
        return self.index(row, t, m, n, shift, lane), self.index(column, t, m, n, shift, lane)

    def _active(self, t: Tile, m: int, n: int) -> Index:
        """Returns the active lanes of the vector at (m, n), 0 for all; an SSA value may be more than all, or
        negative.
        """
        vector, mask, last = self._masked_vector(t, m, n)
        if not isinstance(mask, int):
            return self.code.add(mask, -vector * self.lanes)
        return mask if vector == last else 0

    def _masked_vector(self, t: Tile, m: int, n: int) -> tuple[int, Index, int]:
        """Returns the vector at (m, n) along the lanes, the mask of its tile, and the vector which that belongs to."""
        if self.sched.lane is not None and self.sched.lane == self.sched.m_dim:
            return m, t.m_mask, t.m_size - 1
        return n, t.n_mask, t.n_size - 1

    def walk(self, a: ElementAccess) -> Walk:
        """Returns how ``a`` moves along the lanes."""
        sched = self.sched
        if sched.lane is None:
            return Walk.STAYS
        if (known := self._walks.get(a)) is None:
            contiguous = sched.m_dim if sched.transposed else sched.inner[-1] if sched.copied else None
            walk = walk_of(a, sched.lane, contiguous)
            assert walk is not None, "a lane that no vector follows"
            known = self._walks[a] = walk
        return known

    def read(
        self,
        a: ElementAccess,
        t: Tile,
        m: int,
        n: int,
        shift: tuple[int, int] | None = None,
    ) -> SSAValue:
        """Returns what ``a`` reads at (m, n) of the tile; loads it unless the block has loaded it already.

        Guards are tested, except those that are known to hold.
        """
        number = self.number(a, t, (m, n, shift))
        if (found := self._loads.get(number)) is None:
            if self.walk(a) is Walk.TRANSPOSED and number not in self._merged:
                self.merge([a], t, [(row, n, shift) for row in range(t.m_size)])
            merged = self._merged.get(number)
            if isinstance(merged, TransposedRow):
                self._load_rows(merged, t)
                return self._loads[number]
            found = self._load(a, t, m, n, shift) if merged is None else self._pick(merged, t)
            self._loads[number] = found
        return found

    def number(self, a: ElementAccess, t: Tile, copy: Copy) -> LoadNumber:
        """Returns the value number of what ``a`` reads in a copy of the body.

        A vector of which only some lanes are active has a number of its own: other vectors read all of its elements.
        """
        m, n, shift = copy
        number = self._numbers.number(a, (m, n), shift)
        vector, mask, last = self._masked_vector(t, m, n)
        is_masked = not isinstance(mask, int) or (mask != 0 and vector == last)
        if not is_masked or self.walk(a) is Walk.STAYS:
            return number
        return number._replace(group=(*number.group, "masked", vector))

    def _pick(self, picked: Picked, t: Tile) -> SSAValue:
        """Returns lanes of vectors that several loads share."""
        a, lanes, copy = picked.first.access, picked.length, self._copies[picked.first]
        parts = []
        for part in range(picked.count):
            key = picked.first, part
            if key not in self._loads:
                self._loads[key] = self._load_part(picked, part, t, copy)
            parts.append(self._loads[key])
        if len(picked.lanes) == 1:
            return self.code.add_op(vector.ExtractOp(parts[0], picked.lanes, a.element))
        return gathered(self.code, parts, [divmod(lane, lanes) for lane in picked.lanes])

    def _load_part(self, picked: Picked, part: int, t: Tile, copy: Copy) -> SSAValue:
        """Returns contiguous vector ``part`` of those that several loads share; of a last column only the elements that
        its active lanes read.
        """
        a, code, lanes, start = picked.first.access, self.code, picked.length, part * picked.length
        active = 0 if len(picked.lanes) == 1 else self._active(t, *copy[:2])
        left = self._elements_left(active, picked.count, start)
        if left is None:
            return code.splat(zero(a.element), a.element, lanes)

        def load() -> SSAValue:
            where = moved(code, self.where(a, t, *copy), start)
            return code.load_vector(self.buffers[a.buffer], where, a.element, lanes, left)

        return self._checked(a, [g for g in a.guards if not self.known.holds(g)], t, copy, lanes, load)

    def _load_rows(self, row: TransposedRow, t: Tile) -> None:
        """Load the rows of a transposed block: a vector along the rows for each lane."""
        a, (m, n, shift) = row.first.access, self._copies[row.first]
        places = [self.where(a, t, m, n, shift, lane) for lane in self._lanes_of_block(self._active(t, m, n))]
        loaded = load_transposed(self.code, self.buffers[a.buffer], places, a.element, row.count, self.lanes)
        for i, value in enumerate(loaded[: row.count]):
            self._loads[row.first._replace(offset=row.first.offset + i)] = value

    def _elements_left(self, active: Index, stride: int, start: int) -> Index | None:
        """Returns how many elements of a vector that begins with element ``start`` belong to ``active`` lanes of
        ``stride`` elements each: 0 for all, None for none.
        """
        if not isinstance(active, int):
            return self.code.add(self.code.mul(active, stride), -start)
        left = active * stride - start
        if not active or left >= self.lanes:
            return 0
        return left if left > 0 else None

    def _is_dense(self, a: ElementAccess, count: int) -> bool:
        """Returns whether ``count`` rows of each lane directly follow those of the lane before, and are few enough to
        be shuffled from contiguous vectors.
        """
        assert self.sched.lane is not None
        return count <= ELEMENTWISE.parted_rows and same(a.index.coeff(self.sched.lane), count) is True

    def _lanes_of_block(self, active: Index) -> list[Index]:
        """Returns the active lanes of a transposed block; if their number is open, the others are the last one."""
        if isinstance(active, int):
            return list(range(active or self.lanes))
        last = self.code.add(active, -1)
        return [self.code.minimum(last, at) for at in range(self.lanes)]

    def _load(self, a: ElementAccess, t: Tile, m: int, n: int, shift: tuple[int, int] | None) -> SSAValue:
        """Returns what ``a`` reads at (m, n), loaded by itself: a vector, or one scalar for all lanes."""
        tested = [g for g in a.guards if not self.known.holds(g)]
        of_lanes = [g for g in tested if self.sched.lane is not None and g.index.uses(self.sched.lane)]
        checks = [g for g in tested if g not in of_lanes]
        along = self.walk(a) in (Walk.ALONG, Walk.STRIDED)

        def plain() -> SSAValue:
            if is_image(self.buffers[a.buffer].type):
                return self._fetch(a, t, m, n, shift, keep=not checks)
            where = self.where(a, t, m, n, shift)
            if not along:
                return self.code.load(self.buffers[a.buffer], where, a.element)
            assert self.sched.lane is not None
            step, ends = a.index.coeff(self.sched.lane), None
            for g in of_lanes:
                assert a.fill is not None
                ends = Ends(self.index(g.index, t, m, n, shift), g.extent, a.fill)
            found = LaneVector(self.buffers[a.buffer], where, a.element, self.lanes, step, self._active(t, m, n))
            return found.load(self.code, ends)

        return self._checked(a, checks, t, (m, n, shift), self.lanes if along else 0, plain)

    def _checked(
        self, a: ElementAccess, checks: Sequence[Guard], t: Tile, copy: Copy, lanes: int, load: Callable[[], SSAValue]
    ) -> SSAValue:
        """Returns what ``load`` emits if the guards ``checks`` hold, else the fill of ``a``; a scalar if ``lanes`` is
        0.
        """
        if not checks:
            return load()
        code, fill = self.code, a.fill
        assert fill is not None
        inside = code.all_of(*(code.inside(self.index(g.index, t, *copy), g.extent) for g in checks))
        return code.choose(
            inside, load, lambda: code.splat(fill, a.element, lanes) if lanes else code.constant(fill, a.element)
        )

    def body(self, stage: Stage, inputs: Sequence[SSAValue | None], t: Tile, m: int, n: int) -> list[SSAValue]:
        """Returns the values that ``stage`` yields for ``inputs`` at (m, n) of the tile."""
        lane = None if self.sched.horizontal and not stage.reduces else self.sched.lane

        def index(d: int, more: Index = 0) -> Index:
            shift = None if lane is None or more == 0 else (lane, more)
            return self.index(stage.dims[d], t, m, n, shift)

        if lane is not None and self._computes_indices(stage):
            active = self._active(t, m, n)
            return LaneBody(self.code, stage, inputs, lane, self.lanes, active, index, self.buffers).emit()
        lanes = 1 if self.sched.horizontal and not stage.reduces else self.lanes
        return emit_body(self.code, stage, inputs, lanes, index, self.buffers)

    def _computes_indices(self, stage: Stage) -> bool:
        if (known := self._places.get(stage)) is None:
            known = self._places[stage] = computes_indices(stage)
        return known

    def _fetch(self, a: ElementAccess, t: Tile, m: int, n: int, shift: tuple[int, int] | None, keep: bool) -> SSAValue:
        """Returns one element of an image, taken from its pixel, which is loaded once per tile if ``keep``."""
        image, (row, column) = self.buffers[a.buffer], split(a.index)
        lanes = shape_of(image.type)[2]
        location = pixel_location(column, lanes, self.sched.n_dim, n)
        if location is None:
            at = self.index(row, t, m, n, shift), self.index(column, t, m, n, shift)
            return lane_at(self.code, image, *at, a.element)
        if lanes == 1:
            at = self.index(row, t, m, n, shift), self.index(location.pixel, t, m, n, shift)
            return self.code.load(image, (*at, 0), a.element)
        element = self.number(a, t, (m, n, shift))
        key = element._replace(offset=element.offset - location.lane), 0
        pixel = self._loads.get(key)
        if pixel is None:
            at = self.index(row, t, m, n, shift), self.index(location.pixel, t, m, n, shift)
            pixel = self.code.load_vector(image, (*at, 0), a.element, lanes, 0)
            if keep:
                self._loads[key] = pixel
        return self.code.add_op(vector.ExtractOp(pixel, [location.lane], a.element))

    def _put(self, a: ElementAccess, value: SSAValue, t: Tile, m: int, n: int) -> None:
        """Store one element of an image; the pixel is written with its last element."""
        image, (row, column) = self.buffers[a.buffer], split(a.index)
        lanes = shape_of(image.type)[2]
        location = pixel_location(column, lanes, self.sched.n_dim, n)
        if location is None or t.n_size != lanes:
            raise CodegenError(f"{image.type}: a kernel would store one element of a pixel of {lanes}")
        held = self._lanes.setdefault(a, [])
        held.append(value)
        if len(held) == lanes:
            at = self.index(row, t, m, n), self.index(location.pixel, t, m, n)
            copy_pixel(self.code, image, *at, self._lanes.pop(a).__getitem__)

    def write(self, a: ElementAccess, value: SSAValue, t: Tile, m: int, n: int) -> None:
        if is_image(self.buffers[a.buffer].type):
            self._put(a, value, t, m, n)
            return
        buffer, walk = self.buffers[a.buffer], Walk.STAYS if self.sched.horizontal else self.walk(a)
        if walk is not Walk.STAYS and not isinstance(value.type, VectorType):
            value = self.code.broadcast(value, self.lanes)
        if walk is Walk.TRANSPOSED:
            rows = self._collected.setdefault((a, n), [])
            rows.append(value)
            if len(rows) == t.m_size:
                self._store_rows(a, rows, t, n)
        elif walk is Walk.ALONG:
            self.code.store_vector(value, buffer, self.where(a, t, m, n), self.lanes, self._active(t, m, n))
        else:
            self.code.store(value, buffer, self.where(a, t, m, n))

    def _store_rows(self, a: ElementAccess, rows: list[SSAValue], t: Tile, n: int) -> None:
        """Store a block of rows and lanes whose memory is contiguous along the rows."""
        code, buffer, active = self.code, self.buffers[a.buffer], self._active(t, 0, n)
        if not self._is_dense(a, len(rows)):
            places = [self.where(a, t, 0, n, None, lane) for lane in self._lanes_of_block(active)]
            store_transposed(code, rows, buffer, places)
            return
        for part, value in enumerate(interleaved(code, rows)):
            start = part * self.lanes
            left = self._elements_left(active, len(rows), start)
            if left is not None:
                code.store_vector(value, buffer, moved(code, self.where(a, t, 0, n), start), self.lanes, left)
