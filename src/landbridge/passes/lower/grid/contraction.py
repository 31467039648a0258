"""Matrix multiplications and convolutions: tiles of the result by workgroups, staged in local memory.

Every contraction is ``out[b, m, n] = sum over k of x[b, m, k] * y[b, n, k]``, where each of b, m, n and k stands for
any number of loops: of a convolution m are the pixels, n the output channels and k the window and input channels, so
that x is its image gathered window by window (Chellapilla et al., 2006). A workgroup computes a tile of m x n; its
work-items copy a slice of x and y to local memory together, then each multiplies a block of registers (Volkov and
Demmel, "Benchmarking GPUs to Tune Dense Linear Algebra", 2008).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from landbridge.passes.lower.access import Access
from landbridge.passes.lower.body import emit_body
from landbridge.passes.lower.code import Code, Index
from landbridge.passes.lower.emit import NestEmitter
from landbridge.passes.lower.grid.launch import Item, Launcher, barrier, local_memory, unflatten
from landbridge.passes.lower.grid.points import ONE, serial
from landbridge.passes.lower.grid.tiles import Contraction, Tiles, finest
from landbridge.passes.lower.nest import Nest


def contraction_launch(
    launcher: Launcher, nest: Nest, found: Contraction, tiles: Tiles, buffers: Mapping[SSAValue, SSAValue]
) -> None:
    """One launch that computes the whole nest."""
    extent = {name: [nest.dims[d].extent for d in getattr(found, name)] for name in ("batch", "m", "n", "k")}
    m, n = math.prod(extent["m"]), math.prod(extent["n"])
    grid = [math.prod(extent["batch"]), -(-n // tiles.n), -(-m // tiles.m)]

    def body(code: Code, item: Item) -> None:
        batch, column, row = unflatten(code, item.group, grid)
        env = dict(zip(found.batch, unflatten(code, batch, extent["batch"]), strict=True))
        emitter = NestEmitter(code, nest, serial(nest), buffers, env)
        _Tile(code, emitter, found, tiles, item.thread, code.mul(row, tiles.m), code.mul(column, tiles.n)).emit()

    launcher.launch(math.prod(grid), tiles.size, body)


@dataclass(frozen=True)
class _Staged:
    """One operand in local memory: element (k, i) at ``k * pitch + i``."""

    access: Access
    dims: tuple[int, ...]
    start: Index
    extent: int
    width: int
    memory: SSAValue
    pitch: int
    along_k: bool


class _Tile:
    """Emits one workgroup's tile, whose first result is (``m``, ``n``)."""

    def __init__(
        self, code: Code, emitter: NestEmitter, found: Contraction, tiles: Tiles, thread: SSAValue, m: Index, n: Index
    ) -> None:
        self._code, self._emitter, self._found, self._tiles = code, emitter, found, tiles
        self._thread, self._m, self._n = thread, m, n
        main = emitter.nest.reduction
        assert main is not None
        self._main = main
        self._depth = self._limit(found.k)
        self._row = code.remainder(thread, tiles.rows)
        self._column = code.quotient(thread, tiles.rows)

    def _extents(self, dims: Sequence[int]) -> list[int]:
        return [self._emitter.nest.dims[d].extent for d in dims]

    def _limit(self, dims: Sequence[int]) -> int:
        return math.prod(self._extents(dims))

    def emit(self) -> None:
        code, t, found = self._code, self._tiles, self._found
        x = self._stage(found.x, found.m, self._m, t.m)
        y = self._stage(found.y, found.n, self._n, t.n)
        init = code.constant(self._main.inits[0], self._main.writes[0].element)  # type: ignore[arg-type]
        others = self._others()

        def chunk(k: SSAValue, carried: list[SSAValue]) -> Sequence[SSAValue]:
            for operand in (x, y):
                self._fill(operand, k)
            barrier(code)
            left = (
                t.depth if self._depth % t.depth == 0 else code.minimum(code.add(self._depth, code.mul(k, -1)), t.depth)
            )

            def step(i: SSAValue, sums: list[SSAValue]) -> Sequence[SSAValue]:
                return self._multiply(x, y, i, sums, others)

            sums = code.loop(0, left, 1, carried, step)
            barrier(code)
            return sums

        sums = code.loop(0, self._depth, t.depth, [init] * (t.row_block * t.column_block), chunk)
        for i in range(t.row_block):
            for j in range(t.column_block):
                self._finish(i, j, sums[i * t.column_block + j])

    def _stage(self, number: int, dims: tuple[int, ...], start: Index, width: int) -> _Staged:
        access = self._main.reads[number]
        assert isinstance(access, Access)
        along_k = finest(self._found.k, access) < finest(dims, access)
        pitch = width + 1 if along_k else width  # neighbours along k then fall on different banks
        memory = local_memory(self._code, access.element, pitch * self._tiles.depth)
        return _Staged(access, dims, start, math.prod(self._extents(dims)), width, memory, pitch, along_k)

    def _fill(self, s: _Staged, k0: Index) -> None:
        """Copy ``s``'s slice from iteration ``k0`` on; past the edges the last element is repeated, never used."""
        code, t = self._code, self._tiles

        def element(e: Index) -> None:
            if s.along_k:
                k, i = code.remainder(e, t.depth), code.quotient(e, t.depth)
            else:
                i, k = code.remainder(e, s.width), code.quotient(e, s.width)
            at, turn = code.add(s.start, i), code.add(k0, k)
            if s.extent % s.width:
                at = code.minimum(at, s.extent - 1)
            if self._depth % t.depth:
                turn = code.minimum(turn, self._depth - 1)
            self._set(s.dims, at)
            self._set(self._found.k, turn)
            code.store(self._read(s.access), s.memory, code.add(code.mul(k, s.pitch), i))

        count, size = s.width * t.depth, t.size
        for first in range(0, count, size):
            e = code.add(self._thread, first)
            if first + size <= count:
                element(e)
            else:
                code.when(code.inside(code.value(e), count), lambda: element(e))  # noqa: B023

    def _multiply(
        self, x: _Staged, y: _Staged, k: SSAValue, sums: Sequence[SSAValue], others: Mapping[int, list[SSAValue]]
    ) -> list[SSAValue]:
        code, t = self._code, self._tiles

        def loads(s: _Staged, own: Index, items: int, block: int) -> list[SSAValue]:
            base = code.add(code.mul(k, s.pitch), own)
            return [code.load(s.memory, code.add(base, i * items), s.access.element) for i in range(block)]

        xs = loads(x, self._row, t.rows, t.row_block)
        ys = loads(y, self._column, t.columns, t.column_block)
        results = []
        for i in range(t.row_block):
            for j in range(t.column_block):
                at = i * t.column_block + j
                staged = {self._found.x: xs[i], self._found.y: ys[j]}
                reads = [
                    staged[r] if r in staged else others[r][at] if r in others else None
                    for r in range(len(self._main.reads))
                ]
                results += emit_body(code, self._main, [*reads, sums[at]], 1, _no_index, {}, reassociate=True)
        return results

    def _others(self) -> dict[int, list[SSAValue]]:
        """The reads that no iteration changes, for each result of the block."""
        found: dict[int, list[SSAValue]] = {}
        for number, read in enumerate(self._main.reads):
            if isinstance(read, Access) and number not in (self._found.x, self._found.y):
                found[number] = []
                for i in range(self._tiles.row_block):
                    for j in range(self._tiles.column_block):
                        self._at_result(i, j, clamp=True)
                        found[number].append(self._read(read))
        return found

    def _at_result(self, i: int, j: int, clamp: bool = False) -> None:
        """Set the loops to result (i, j) of this work-item's block."""
        code, t, found = self._code, self._tiles, self._found
        m = code.add(code.add(self._m, self._row), i * t.rows)
        n = code.add(code.add(self._n, self._column), j * t.columns)
        self._set(found.m, code.minimum(m, self._limit(found.m) - 1) if clamp else m)
        self._set(found.n, code.minimum(n, self._limit(found.n) - 1) if clamp else n)

    def _finish(self, i: int, j: int, value: SSAValue) -> None:
        """The stages after the sum, and the stores, of one result."""
        code, t, found = self._code, self._tiles, self._found
        limit_m, limit_n = self._limit(found.m), self._limit(found.n)

        def last() -> None:
            self._at_result(i, j)
            self._emitter.operands.forget()
            self._emitter.point(ONE, 0, 0, {(0, 0, 0, 0): value})

        m = code.add(code.add(self._m, self._row), i * t.rows)
        n = code.add(code.add(self._n, self._column), j * t.columns)
        checks = [(m, limit_m)] if limit_m % t.m else []
        checks += [(n, limit_n)] if limit_n % t.n else []
        run = last
        for index, limit in checks:
            run = _guarded(code, index, limit, run)
        run()

    def _set(self, dims: Sequence[int], flat: Index) -> None:
        self._emitter.env.update(zip(dims, unflatten(self._code, flat, self._extents(dims)), strict=True))

    def _read(self, access: Access) -> SSAValue:
        self._emitter.operands.forget()
        return self._emitter.operands.read(access, ONE, 0, 0)


def _guarded(code: Code, index: Index, limit: int, run: Callable[[], None]) -> Callable[[], None]:
    return lambda: code.when(code.inside(index, limit), run)


def _no_index(d: int) -> Index:
    raise AssertionError("the body of a contraction reads no loop index")
