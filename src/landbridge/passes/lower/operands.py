"""Reads and writes elements of a register tile: indices, shared loads, stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import vector
from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from landbridge.errors import CodegenError
from landbridge.ir.types import shape_of
from landbridge.passes.lower.access import ElementAccess, Linear
from landbridge.passes.lower.between_lanes import step_between
from landbridge.passes.lower.body import emit_body
from landbridge.passes.lower.code import Code, Index, Where
from landbridge.passes.lower.guards import KnownRanges
from landbridge.passes.lower.image_memory import copy_pixel, is_image, lane_at, pixel_location
from landbridge.passes.lower.lane_body import LaneBody, computes_indices
from landbridge.passes.lower.lane_vectors import Ends, LaneVector, moved
from landbridge.passes.lower.lane_walk import Walk, walk_of
from landbridge.passes.lower.nest import Stage
from landbridge.passes.lower.peeling import PeeledIterations, Piece
from landbridge.passes.lower.row_memory import in_rows, split
from landbridge.passes.lower.schedule import Schedule
from landbridge.passes.lower.straight_line import LoadNumbers, Unrolled
from landbridge.passes.lower.transposed import gathered
from landbridge.passes.lower.transposed_blocks import Location, Shift, TransposedBlocks
from landbridge.records import record
from landbridge.sizes.size import Extent


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
    pieces: tuple[Piece, ...] = ()
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
        known: KnownRanges,
    ) -> None:
        self.code, self.sched, self.buffers, self.env, self.known = code, sched, buffers, env, known
        self.lanes = sched.lanes if sched.lane is not None else 1
        #: For memory that holds only a part of the elements that its accesses index: the index of the first one.
        self.origins: dict[SSAValue, Index] = {}
        self._loops = tuple(
            None if d is None else Unrolled(d, self.lanes if d == sched.lane else 1) for d in (sched.m_dim, sched.n_dim)
        )
        self._numbers = LoadNumbers(self._loops, known.holds)
        self._loads: dict[tuple[object, ...], SSAValue] = {}
        #: Loads before a loop, which all of its iterations use.
        self._retained: dict[tuple[object, ...], SSAValue] = {}
        #: Transposed blocks that were loaded, or are collected for a store, by access and column: a vector for each
        #: row.
        self._blocks: dict[tuple[ElementAccess, int], list[SSAValue]] = {}
        #: The elements of an incomplete pixel, by the access that writes them.
        self._lanes: dict[ElementAccess, list[SSAValue]] = {}
        #: Cached facts about accesses and stages.
        self._walks: dict[ElementAccess, Walk] = {}
        self._places: dict[Stage, bool] = {}

    def forget(self) -> None:
        """Start a new block of straight-line code: the loads of other blocks are not visible in it."""
        self._numbers = LoadNumbers(self._loops, self.known.holds)
        self._loads, self._blocks = dict(self._retained), {}

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

    def index(self, x: Linear, t: Tile, m: int, n: int, shift: Shift | None = None) -> Index:
        code = self.code
        base: Index = 0
        distance: Extent = 0

        def shifted(d: int) -> tuple[Index, Extent]:
            start, offset = self._dim(d, t, m, n)
            if shift is None or shift[0] != d:
                return start, offset
            by = shift[1]
            return (code.add(start, by), offset) if isinstance(by, SSAValue) else (start, offset + by)

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

    def where(self, a: ElementAccess, t: Tile, m: int, n: int, shift: Shift | None = None) -> Where:
        """Returns the location of an access: its element, or row and column."""
        if not in_rows(a.buffer.type):
            at = self.index(a.index, t, m, n, shift)
            return self.code.add(at, self.code.mul(self.origins.get(a.buffer, 0), -1))
        row, column = split(a.index)
        return self.index(row, t, m, n, shift), self.index(column, t, m, n, shift)

    def _active(self, t: Tile, m: int, n: int) -> Index:
        """Returns the active lanes of the vector at (m, n), 0 for all; an SSA value may be more than all, or
        negative.
        """
        if self.sched.lane is not None and self.sched.lane == self.sched.m_dim:
            vector, mask, last = m, t.m_mask, t.m_size - 1
        else:
            vector, mask, last = n, t.n_mask, t.n_size - 1
        if not isinstance(mask, int):
            return self.code.add(mask, -vector * self.lanes)
        return mask if vector == last else 0

    def walk(self, a: ElementAccess) -> Walk:
        """Returns how ``a`` moves along the lanes."""
        if self.sched.lane is None:
            return Walk.STAYS
        if (known := self._walks.get(a)) is None:
            walk = walk_of(a, self.sched.lane, self.sched.m_dim if self.sched.transposed else None)
            assert walk is not None, "a lane that no vector follows"
            known = self._walks[a] = walk
        return known

    def _transposed(self) -> TransposedBlocks:
        assert self.sched.lane is not None and self.sched.m_dim is not None
        return TransposedBlocks(self.code, self.sched.lane, self.lanes, self.sched.m_dim)

    def _location(self, a: ElementAccess, t: Tile, n: int) -> Location:
        return lambda shift: self.where(a, t, 0, n, shift)

    def read(
        self,
        a: ElementAccess,
        t: Tile,
        m: int,
        n: int,
        shift: tuple[int, int] | None = None,
        together: int = 0,
        between: int = 1,
    ) -> SSAValue:
        """Returns what ``a`` reads at (m, n) of the tile; loads it unless the block has loaded it already.

        Guards are tested, except those that are known to hold. ``together`` > 0: returns a vector of so many contiguous
        scalars, if ``a`` reads one for all lanes. ``between``: so many iterations of the shifted loop are emitted in a
        row; those that read elements between each other's lanes share their vectors.
        """
        if self.walk(a) is Walk.TRANSPOSED:
            if (a, n) not in self._blocks:
                self._blocks[a, n] = self._transposed().load(
                    a, self.buffers[a.buffer], self._location(a, t, n), t.m_size, self._active(t, 0, n)
                )
            return self._blocks[a, n][m]
        key = self._numbers.number(a, (m, n), shift)
        if (found := self._loads.get(key)) is None:
            if shift is not None and self._shares(a, t, m, n, shift[0], between):
                found = self._between_lanes(a, t, m, n, shift, between)
            else:
                found = self._load(a, t, m, n, shift, together)
            self._loads[key] = found
        return found

    def _shares(self, a: ElementAccess, t: Tile, m: int, n: int, loop: int, between: int) -> bool:
        """Returns whether ``between`` iterations of ``loop`` read the same vectors at (m, n)."""
        if (
            between == 1
            or self.sched.lane is None
            or self._active(t, m, n) != 0
            or is_image(self.buffers[a.buffer].type)
        ):
            return False
        return step_between(a, self.sched.lane, loop) == between

    def _between_lanes(
        self, a: ElementAccess, t: Tile, m: int, n: int, shift: tuple[int, int], between: int
    ) -> SSAValue:
        """Returns the vector of an iteration, picked from vectors that ``between`` iterations share and that are loaded
        once.

        Nothing is loaded that these iterations do not read.
        """
        loop, iteration = shift
        first = iteration - iteration % between
        where, buffer = self.where(a, t, m, n, (loop, first)), self.buffers[a.buffer]
        parts = []
        for part in range(between):
            key = (a, "between", m, n, first, part)
            if key not in self._loads:
                at = moved(self.code, where, part * self.lanes)
                self._loads[key] = self.code.load_vector(buffer, at, a.element, self.lanes, 0)
            parts.append(self._loads[key])
        places = [divmod(iteration % between + between * i, self.lanes) for i in range(self.lanes)]
        return gathered(self.code, parts, places)

    def read_lane(self, a: ElementAccess, t: Tile, m: int, n: int, shift: tuple[int, int], lanes: int) -> SSAValue:
        """Returns the scalar that ``read`` returns, taken from a vector of the scalars of ``lanes`` iterations of the
        shifted loop.
        """
        loop, iteration = shift
        return self._lane_of(self.read(a, t, m, n, (loop, iteration - iteration % lanes), lanes), iteration % lanes, a)

    def read_number(self, a: ElementAccess, t: Tile, m: int, n: int, shift: tuple[int, int], places: range) -> SSAValue:
        """Returns the scalar that ``read`` returns, taken from a vector of elements ``places`` of the window that rows
        share.
        """
        window, (loop, iteration) = self.sched.scalars, shift
        assert window is not None
        at = m * window.stride + iteration
        piece = window.piece(at, places)
        scalars = self.read(a, t, 0, n, (loop, piece.start), len(piece) if len(piece) > 1 else 0)
        return self._lane_of(scalars, at - piece.start, a) if len(piece) > 1 else scalars

    def _lane_of(self, scalars: SSAValue, lane: int, a: ElementAccess) -> SSAValue:
        key = (scalars, lane)
        if (found := self._loads.get(key)) is None:
            found = self._loads[key] = self.code.add_op(vector.ExtractOp(scalars, [lane], a.element))
        return found

    def _load(
        self, a: ElementAccess, t: Tile, m: int, n: int, shift: tuple[int, int] | None, together: int
    ) -> SSAValue:
        tested = [g for g in a.guards if not self.known.holds(g)]
        of_lanes = [g for g in tested if self.sched.lane is not None and g.index.uses(self.sched.lane)]
        checks = [g for g in tested if g not in of_lanes]
        along = self.walk(a) in (Walk.ALONG, Walk.STRIDED)
        lanes = self.lanes if along else together

        def plain() -> SSAValue:
            if is_image(self.buffers[a.buffer].type):
                return self._fetch(a, t, m, n, shift, keep=not checks)
            where = self.where(a, t, m, n, shift)
            if along:
                assert self.sched.lane is not None
                step, ends = a.index.coeff(self.sched.lane), None
                for g in of_lanes:
                    assert a.fill is not None
                    ends = Ends(self.index(g.index, t, m, n, shift), g.extent, a.fill)
                found = LaneVector(self.buffers[a.buffer], where, a.element, self.lanes, step, self._active(t, m, n))
                return found.load(self.code, ends)
            if lanes:
                return self.code.load_vector(self.buffers[a.buffer], where, a.element, lanes, 0)
            return self.code.load(self.buffers[a.buffer], where, a.element)

        if not checks:
            return plain()
        inside = self.code.all_of(*(self.code.inside(self.index(g.index, t, m, n, shift), g.extent) for g in checks))
        assert a.fill is not None
        fill = a.fill
        return self.code.choose(
            inside,
            plain,
            lambda: self.code.splat(fill, a.element, lanes) if lanes else self.code.constant(fill, a.element),
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
        element = self._numbers.number(a, (m, n), shift)
        key = "pixel", element._replace(offset=element.offset - location.lane)
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
            block = self._blocks.setdefault((a, n), [])
            block.append(value)
            if len(block) == t.m_size:
                self._transposed().store(a, block, buffer, self._location(a, t, n), self._active(t, 0, n))
        elif walk is Walk.ALONG:
            self.code.store_vector(value, buffer, self.where(a, t, m, n), self.lanes, self._active(t, m, n))
        else:
            self.code.store(value, buffer, self.where(a, t, m, n))
