"""Matrix multiplications and convolutions: tiles of the result by workgroups, staged in local memory.

Every contraction is ``out[b, m, n] = sum over k of x[b, m, k] * y[b, n, k]``, where each of b, m, n and k stands for
any number of loops: of a convolution m are the pixels, n the output channels and k the window and input channels, so
that x is its image gathered window by window (Chellapilla et al., 2006). A workgroup computes a tile of m x n; its
work-items copy a slice of x and y to local memory together, then each multiplies a block of registers (Volkov and
Demmel, "Benchmarking GPUs to Tune Dense Linear Algebra", 2008). Where tiles are too few for the device and sums are
long, several workgroups share the sums of a tile, and a second launch adds up their parts in order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from xdsl.ir import SSAValue

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.body import emit_body
from landbridge.passes.lower.code import Code, Index
from landbridge.passes.lower.combiners import fold, identity, sums_up
from landbridge.passes.lower.cost import SUM_ORDER
from landbridge.passes.lower.grid.cost import WORKGROUPS
from landbridge.passes.lower.grid.launch import (
    Launcher,
    WorkItem,
    barrier,
    each_item,
    is_multiple,
    local_memory,
    usual_threads,
)
from landbridge.passes.lower.grid.tiles import Contraction, Tiles, finest
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.nest_emitter import NestEmitter
from landbridge.passes.lower.serial import ONE, serial
from landbridge.records import record
from landbridge.sizes.size import Extent, ceildiv, never_below, product


def contraction_launch(
    launcher: Launcher, nest: Nest, found: Contraction, tiles: Tiles, buffers: Mapping[SSAValue, SSAValue]
) -> None:
    """Emit the whole nest: one launch, or two if sums are divided."""
    extent = {name: [nest.dims[d].extent for d in getattr(found, name)] for name in ("batch", "m", "n", "k")}
    m, n = product(extent["m"]), product(extent["n"])
    grid = [tiles.splits, product(extent["batch"]), ceildiv(n, tiles.n), ceildiv(m, tiles.m)]
    parts = _Parts.of(launcher, nest, found, tiles.splits) if tiles.splits > 1 else None

    def body(code: Code, item: WorkItem) -> None:
        part, batch, column, row = code.unflatten(item.group, grid)
        env = dict(zip(found.batch, code.unflatten(batch, extent["batch"]), strict=True))
        emitter = NestEmitter(code, nest, serial(nest), buffers, env)
        tile = _Tile(code, emitter, found, tiles, item.thread, code.mul(row, tiles.m), code.mul(column, tiles.n))
        tile.emit(parts, part)

    launcher.launch(product(grid), tiles.size, body)
    if parts is not None:
        parts.add_up(launcher, nest, buffers)


@record(frozen=True)
class _Parts:
    """Memory for ``splits`` parts of each sum. Sums of one part are ordered by loops ``dims``: rows of a tile are
    adjacent."""

    memory: SSAValue
    splits: int
    dims: tuple[int, ...]
    extents: tuple[Extent, ...]

    @classmethod
    def of(cls, launcher: Launcher, nest: Nest, found: Contraction, splits: int) -> _Parts:
        main, dims = nest.reduction, (*found.batch, *found.n, *found.m)
        assert main is not None
        extents = tuple(nest.dims[d].extent for d in dims)
        return cls(launcher.scratch(main.writes[0].element, splits * product(extents)), splits, dims, extents)

    def store(self, code: Code, part: Index, env: Mapping[int, Index], value: SSAValue) -> None:
        """Store ``value``, the part of the sum at ``env``."""
        at = part
        for dim, extent in zip(self.dims, self.extents, strict=True):
            at = code.add(code.mul(at, extent), env[dim])
        code.store(value, self.memory, at)

    def add_up(self, launcher: Launcher, nest: Nest, buffers: Mapping[SSAValue, SSAValue]) -> None:
        """Launch a work-item for each sum: it adds the parts in order and runs the stages after it."""
        count, main = product(self.extents), nest.reduction
        assert main is not None
        size = usual_threads(count, WORKGROUPS.default_size, launcher.limits)
        element = main.writes[0].element

        def body(code: Code, item: WorkItem) -> None:
            def point(t: Index) -> None:
                value = code.constant(main.inits[0], element)  # type: ignore[arg-type]
                for part in range(self.splits):
                    value = fold(code, main, value, code.load(self.memory, code.add(t, part * count), element))
                env = dict(zip(self.dims, code.unflatten(t, self.extents), strict=True))
                NestEmitter(code, nest, serial(nest), buffers, env).point(ONE, 0, 0, {(0, 0, 0, 0): value})

            each_item(code, item, size, count, point)

        launcher.launch(ceildiv(count, size), size, body)


@record(frozen=True)
class _Share:
    """One element that a work-item copies: its loop indices, its iteration of the slice, and its location in memory."""

    at: Mapping[int, Index]
    k: Index
    vdevice: Index


@record(frozen=True)
class _Staged:
    """An operand in local memory, element (k, i) at ``k * pitch + i``. The first ``copiers`` work-items copy
    ``shares``."""

    access: ElementAccess
    memory: SSAValue
    pitch: int
    shares: tuple[_Share, ...]
    copiers: int


class _Tile:
    """Emits one workgroup's tile, whose first result is (``m``, ``n``)."""

    def __init__(
        self, code: Code, emitter: NestEmitter, found: Contraction, tiles: Tiles, thread: SSAValue, m: Index, n: Index
    ) -> None:
        self._code, self._emitter, self._found, self._tiles = code, emitter, found, tiles
        self._thread, self._m, self._n = thread, m, n
        self._keep: Callable[[Mapping[int, Index], SSAValue], None] | None = None
        main = emitter.nest.reduction
        assert main is not None
        self._main = main
        self._depth = self._limit(found.k)
        self._row = code.remainder(thread, tiles.m_threads)
        self._column = code.quotient(thread, tiles.m_threads)

    def _extents(self, dims: Sequence[int]) -> list[Extent]:
        return [self._emitter.nest.dims[d].extent for d in dims]

    def _limit(self, dims: Sequence[int]) -> Extent:
        return product(self._extents(dims))

    def emit(self, parts: _Parts | None, part: Index) -> None:
        """Emit the results, or with ``parts`` only part number ``part`` of their sums."""
        code, t, found = self._code, self._tiles, self._found
        x = self._stage(found.x, found.m, self._m, t.m)
        y = self._stage(found.y, found.n, self._n, t.n)
        element = self._main.writes[0].element
        init = code.constant(self._main.inits[0], element)  # type: ignore[arg-type]
        first: Index = 0
        last: Index = self._depth
        if parts is not None:
            self._keep = partial(parts.store, code, part)
            init = code.constant(identity("arith.addf", element), element)
            span = ceildiv(self._depth, t.depth * parts.splits) * t.depth
            first = code.mul(part, span)
            last = code.minimum(code.add(first, span), self._depth)
        others = self._others()

        def chunk(k: SSAValue, carried: list[SSAValue]) -> Sequence[SSAValue]:
            for operand in (x, y):
                self._fill(operand, k)
            barrier(code)
            left: Index = t.depth
            if not is_multiple(self._depth, t.depth):
                left = code.minimum(code.add(self._depth, code.mul(k, -1)), t.depth)

            def step(i: SSAValue, sums: list[SSAValue]) -> Sequence[SSAValue]:
                return self._multiply(x, y, i, sums, others)

            sums = code.loop(0, left, 1, carried, step)
            barrier(code)
            return sums

        count, main = t.m_block * t.n_block, self._main
        length = self._depth if parts is None else span
        if not sums_up(main) or never_below(length) <= 2 * SUM_ORDER.chain_terms:
            self._finish(code.loop(first, last, t.depth, [init] * count, chunk))
            return
        zeros = [code.constant(identity("arith.addf", element), element)] * count

        def block(k: SSAValue, totals: list[SSAValue]) -> Sequence[SSAValue]:
            stop = code.minimum(code.add(k, SUM_ORDER.chain_terms), last)
            sums = code.loop(k, stop, t.depth, zeros, chunk)
            return [fold(code, main, a, b) for a, b in zip(totals, sums, strict=True)]

        self._finish(code.loop(first, last, SUM_ORDER.chain_terms, [init] * count, block))

    def _stage(self, number: int, dims: tuple[int, ...], start: Index, width: int) -> _Staged:
        """Divide the copying of an operand: adjacent work-items copy adjacent elements. All sizes are powers of two."""
        code, size, depth = self._code, self._tiles.size, self._tiles.depth
        access = self._main.reads[number]
        assert isinstance(access, ElementAccess)
        along_k = finest(self._found.k, access) < finest(dims, access)
        pitch = width + 1 if along_k else width  # elements adjacent along k then fall on different banks
        memory = local_memory(code, access.element, pitch * depth)
        side = depth if along_k else width
        across, down = code.remainder(self._thread, side), code.quotient(self._thread, side)
        shares: list[_Share] = []
        for first in range(0, width * depth, size):
            if size % side == 0:
                inner, outer = across, code.add(down, first // side)
            else:
                inner, outer = code.add(self._thread, first % side), first // side
            i, k = (outer, inner) if along_k else (inner, outer)
            at = shares[0].at if shares and i is across else self._location(dims, code.add(start, i), width)
            shares.append(_Share(at, k, code.add(code.mul(k, pitch), i)))
        return _Staged(access, memory, pitch, tuple(shares), min(size, width * depth))

    def _location(self, dims: Sequence[int], flat: Index, width: int) -> Mapping[int, Index]:
        """Returns the indices of loops ``dims`` at ``flat``; past the edge, those of the last element (unused)."""
        extents = self._extents(dims)
        limit = product(extents)
        if not is_multiple(limit, width):
            flat = self._code.minimum(flat, limit - 1)
        return dict(zip(dims, self._code.unflatten(flat, extents), strict=True))

    def _fill(self, s: _Staged, k0: Index) -> None:
        """Copy the slice of ``s`` from iteration ``k0`` on."""
        code, found = self._code, self._found

        def copy() -> None:
            for share in s.shares:
                self._emitter.env.update(share.at)
                self._emitter.env.update(self._location(found.k, code.add(k0, share.k), self._tiles.depth))
                code.store(self._read(s.access), s.memory, share.vdevice)

        if s.copiers < self._tiles.size:
            code.when(code.inside(self._thread, s.copiers), copy)
        else:
            copy()

    def _multiply(
        self, x: _Staged, y: _Staged, k: SSAValue, sums: Sequence[SSAValue], others: Mapping[int, list[SSAValue]]
    ) -> list[SSAValue]:
        code, t = self._code, self._tiles

        def loads(s: _Staged, owned: Index, items: int, block: int) -> list[SSAValue]:
            base = code.add(code.mul(k, s.pitch), owned)
            return [code.load(s.memory, code.add(base, i * items), s.access.element) for i in range(block)]

        xs = loads(x, self._row, t.m_threads, t.m_block)
        ys = loads(y, self._column, t.n_threads, t.n_block)
        results = []
        for i in range(t.m_block):
            for j in range(t.n_block):
                at = i * t.n_block + j
                staged = {self._found.x: xs[i], self._found.y: ys[j]}
                reads = [
                    staged[r] if r in staged else others[r][at] if r in others else None
                    for r in range(len(self._main.reads))
                ]
                results += emit_body(code, self._main, [*reads, sums[at]], 1, _no_index, {})
        return results

    def _others(self) -> dict[int, list[SSAValue]]:
        """Returns the loop-invariant reads, for each result of the block."""
        found: dict[int, list[SSAValue]] = {}
        for number, read in enumerate(self._main.reads):
            if isinstance(read, ElementAccess) and number not in (self._found.x, self._found.y):
                found[number] = []
                for i in range(self._tiles.m_block):
                    for j in range(self._tiles.n_block):
                        self._emitter.env.update(self._location(self._found.m, self._m_of(i), self._tiles.m))
                        self._emitter.env.update(self._location(self._found.n, self._n_of(j), self._tiles.n))
                        found[number].append(self._read(read))
        return found

    def _m_of(self, i: int) -> Index:
        """Returns the row of the whole result for row ``i`` of this work-item's block."""
        return self._code.add(self._code.add(self._m, self._row), i * self._tiles.m_threads)

    def _n_of(self, j: int) -> Index:
        return self._code.add(self._code.add(self._n, self._column), j * self._tiles.n_threads)

    def _finish(self, sums: Sequence[SSAValue]) -> None:
        """Emit the stages after the sums, and the stores, for the part of the block that lies inside the result."""
        t, found, env = self._tiles, self._found, self._emitter.env
        m_edges = [self._edge(found.m, self._m_of(i), t.m) for i in range(t.m_block)]
        n_edges = [self._edge(found.n, self._n_of(j), t.n) for j in range(t.n_block)]

        def results(i: int) -> None:
            env.update(m_edges[i][0])
            for j, (at, inside) in enumerate(n_edges):
                env.update(at)
                self._where(inside, partial(self._point, sums[i * t.n_block + j]))

        for i, (_, inside) in enumerate(m_edges):
            self._where(inside, partial(results, i))

    def _edge(self, dims: Sequence[int], flat: Index, width: int) -> tuple[Mapping[int, Index], SSAValue | None]:
        """Returns the indices of ``dims`` at ``flat``, and whether that is inside the result; None if it always is."""
        code, limit = self._code, self._limit(dims)
        inside = None if is_multiple(limit, width) else code.inside(flat, limit)
        return dict(zip(dims, code.unflatten(flat, self._extents(dims)), strict=True)), inside

    def _where(self, condition: SSAValue | None, run: Callable[[], None]) -> None:
        if condition is None:
            run()
        else:
            self._code.when(condition, run)

    def _point(self, value: SSAValue) -> None:
        if self._keep is not None:
            self._keep(self._emitter.env, value)
            return
        self._emitter.operands.forget()
        self._emitter.point(ONE, 0, 0, {(0, 0, 0, 0): value})

    def _read(self, access: ElementAccess) -> SSAValue:
        self._emitter.operands.forget()
        return self._emitter.operands.read(access, ONE, 0, 0)


def _no_index(d: int) -> Index:
    raise AssertionError("the body of a contraction reads no loop index")
