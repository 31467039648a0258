"""The loop tree of a scheduled nest, created by transformations: a schedule that would change a result raises
ScheduleError.
"""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.errors import ScheduleError
from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.loop_transformations import parallelize, peel, reorder, rfactor, split, unroll, vectorize
from landbridge.passes.lower.loop_tree import LoopTree, TailStrategy, TreeLoop, loop_tree
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.peeling import Peeling
from landbridge.passes.lower.runs import Run
from landbridge.passes.lower.schedule import Schedule
from landbridge.passes.lower.sum_blocks import block_of_sums
from landbridge.sizes.size import Extent, ceildiv, same

_EXACT, _PEEL, _GUARD = TailStrategy.EXACT, TailStrategy.PEEL, TailStrategy.GUARD_WITH_IF


def tree_of(nest: Nest, scheds: Sequence[Schedule], prefix: int = 0, *, is_in_place: bool = False) -> LoopTree:
    """Returns the loop tree of ``nest`` as ``scheds`` run it, each for columns of its own.

    The first ``prefix`` loops of the nest are around it; without them, loops around tiles of columns are parallel.
    ``is_in_place``: a result may overwrite an operand. Raises ScheduleError if a schedule is not legal, or if the
    schedules do not compute every column once.
    """
    tree = loop_tree(nest, prefix, is_in_place=is_in_place)
    if len(scheds) > 1:
        first = f"d{scheds[0].n_dim}"
        tree = reorder(tree, [first, *(loop.name for loop in tree.branches()[0] if loop.name != first)])
    for number, sched in enumerate(scheds[1:]):
        assert sched.n_dim is not None
        start = sched.n_runs[0].start * (sched.lanes if sched.n_dim == sched.lane else 1)
        loop = _loop(tree, f"d{sched.n_dim}", number)
        tree = peel(tree, loop.name, start - loop.start, number)
    for branch, sched in reversed(list(enumerate(scheds))):  # the last first, so that branches keep their numbers
        tree = _ScheduledBranch(nest, sched).tiled(tree, branch)
    if not prefix:
        for dim in scheds[0].outer:
            tree = parallelize(tree, f"d{dim}")
    return tree


class _ScheduledBranch:
    """Transforms one branch of a tree, which still has the loops of ``nest``, as ``sched`` says."""

    def __init__(self, nest: Nest, sched: Schedule) -> None:
        self._nest, self._sched = nest, sched
        self._lane = None if sched.lane is None else f"d{sched.lane}"
        self._n = None if sched.n_dim is None else f"d{sched.n_dim}"
        self._m = None if sched.m_dim is None else f"d{sched.m_dim}"
        self._inner = [f"d{d}" for d in sched.inner]
        #: The loops inside the reduction, outermost first.
        self._tile: list[str] = []

    def tiled(self, tree: LoopTree, branch: int) -> LoopTree:
        """Returns ``tree`` with ``branch`` in tiles of columns, then of rows."""
        sched, outer = self._sched, [f"d{d}" for d in self._sched.outer]
        axes = list(dict.fromkeys(name for name in (self._n, self._m, self._lane) if name is not None))
        axes = [name for name in axes if name not in self._inner]
        order = [*outer, *axes, *self._inner]
        kept = [d for d in range(len(self._nest.dims)) if d in sched.inner]
        tree = reorder(tree, order, branch, reassociates=list(sched.inner) != kept)
        if self._lane is not None and not sched.horizontal:
            tail = _EXACT if same(_loop(tree, self._lane, branch).extent % sched.lanes, 0) is True else _GUARD
            tree = split(tree, self._lane, sched.lanes, tail, branch)
            outer_lane, self._tile = f"{self._lane}.o", [f"{self._lane}.i"]
            self._n = outer_lane if self._n == self._lane else self._n
            self._m = outer_lane if self._m == self._lane else self._m
            tree = self._sunk(tree, branch)
            tree = vectorize(tree, self._tile[0], branch)
        if self._n is None:
            return self._in_rows(tree, branch)
        inside = self._tile
        tree, sizes = _cut(tree, self._n, sched.n_runs, branch)
        for part, size in reversed(list(enumerate(sizes, branch))):
            self._tile = inside
            tree = self._in_rows(*self._unrolled(tree, part, self._n, size))
        return tree

    def _in_rows(self, tree: LoopTree, branch: int) -> LoopTree:
        if self._m is None or self._m == self._n:
            return self._reduced(tree, branch)
        inside = self._tile
        tree, sizes = _cut(tree, self._m, self._sched.m_runs, branch)
        for part, size in reversed(list(enumerate(sizes, branch))):
            self._tile = inside
            tree = self._reduced(*self._unrolled(tree, part, self._m, size))
        return tree

    def _unrolled(self, tree: LoopTree, branch: int, name: str, tile: str | None) -> tuple[LoopTree, int]:
        """Returns ``tree`` with the loop ``tile`` of a register tile unrolled, inside the reduction."""
        if tile is not None:
            self._tile = [tile, *(each for each in self._tile if each != tile)]
            tree = unroll(self._sunk(tree, branch), tile, branch)
        return tree, branch

    def _sunk(self, tree: LoopTree, branch: int) -> LoopTree:
        """Returns ``tree`` with the loops of the register tile innermost."""
        return _innermost(tree, self._tile, branch)

    def _reduced(self, tree: LoopTree, branch: int) -> LoopTree:
        """Returns ``tree`` with the reduction loops of ``branch`` in blocks, unrolled and in vectors."""
        sched, nest = self._sched, self._nest
        if nest.reduction is None or not sched.inner:
            return tree
        last = f"d{sched.lane}" if sched.horizontal else self._inner[-1]
        lanes = sched.lanes if sched.horizontal else 1
        if sched.horizontal and len(self._inner) > 1:
            first = [last, *(name for name in self._inner if name != last)]
            tree = reorder(tree, first, branch, reassociates=True)
        extent = _loop(tree, last, branch).extent
        if sched.horizontal and same(extent % lanes, 0) is not True:
            tree = peel(tree, last, extent // lanes * lanes, branch)
        if sched.horizontal and len(self._inner) > 1:
            tree = reorder(tree, [*first[1:], last], branch, reassociates=True)
        guards = (g for r in nest.reduction.reads if isinstance(r, ElementAccess) for g in r.guards)
        is_tested = any(g.index.uses(int(last[1:])) for g in guards)
        most = max(sched.partial_sums, 1 if is_tested else max(sched.iterations, sched.unrolled))
        tree = self._in_blocks(tree, branch, last, most * lanes)
        return self._last_loop(tree, branch, last, lanes, most)

    def _in_blocks(self, tree: LoopTree, branch: int, last: str, step: int) -> LoopTree:
        """Returns ``tree`` with long sums cut into blocks, each of which is summed separately."""
        sched = self._sched
        dim, block = block_of_sums(self._nest, sched, Peeling(self._nest, sched))
        if dim is None:
            return tree
        name = f"d{dim}"
        iterations: Extent = block
        if name == last:
            terms = max(1, step // (sched.lanes if sched.horizontal else 1) // sched.partial_sums)
            iterations = ceildiv(block, terms) * step
        extent = _loop(tree, name, branch).extent
        tail = _EXACT if same(extent % iterations, 0) is True else _GUARD
        return rfactor(split(tree, name, iterations, tail, branch), f"{name}.o", branch)

    def _last_loop(self, tree: LoopTree, branch: int, name: str, lanes: int, most: int) -> LoopTree:
        """Returns ``tree`` with ``most`` iterations of the last reduction loop unrolled, each of ``lanes`` lanes."""
        chain = [loop.name for loop in tree.branches()[branch]]
        name = name if name in chain else f"{name}.i"
        if most > 1:
            before = len(tree.branches())
            tree = split(tree, name, most * lanes, _PEEL, branch)
            if len(tree.branches()) > before:
                tree = self._vector(tree, branch + 1, name, lanes)
            if not any(loop.name == f"{name}.i" for loop in tree.branches()[branch]):
                return tree
            name = f"{name}.i"
            if lanes == 1 or self._sched.partial_sums == most:
                tree = self._vector(tree, branch, name, lanes)
                name = name if lanes == 1 else f"{name}.o"
                if self._sched.partial_sums > 1:
                    if self._sched.partial_sums < most:
                        tree = split(tree, name, self._sched.partial_sums, _EXACT, branch)
                        tree = unroll(tree, f"{name}.o", branch)
                        name = f"{name}.i"
                    tree = rfactor(tree, name, branch)
                return unroll(tree, name, branch)
            return unroll(self._vector(tree, branch, name, lanes), f"{name}.o", branch)
        return self._vector(tree, branch, name, lanes)

    def _vector(self, tree: LoopTree, branch: int, name: str, lanes: int) -> LoopTree:
        """Returns ``tree`` with vectors of ``lanes`` iterations of the reduction loop ``name``."""
        if lanes == 1:
            return tree
        tree = split(tree, name, lanes, _EXACT, branch)
        if not self._nest.is_scan:
            tree = rfactor(tree, f"{name}.i", branch)
        return vectorize(_innermost(tree, [f"{name}.i"], branch), f"{name}.i", branch)


def _innermost(tree: LoopTree, names: Sequence[str], branch: int) -> LoopTree:
    """Returns ``tree`` with the loops ``names`` innermost in ``branch``."""
    chain = [loop.name for loop in tree.branches()[branch]]
    below = chain[min(chain.index(name) for name in names) :]
    return reorder(tree, [*(name for name in below if name not in names), *names], branch)


def _cut(tree: LoopTree, name: str, runs: Sequence[Run], branch: int) -> tuple[LoopTree, list[str | None]]:
    """Returns ``tree`` with loop ``name`` of ``branch`` in the tiles of ``runs``, each a branch; and the loops of one
    tile, None if a tile is one iteration.
    """
    tiles: list[str | None] = []
    position = runs[0].start
    for number, run in enumerate(runs, branch):
        if same(run.start, position) is not True:
            raise ScheduleError(f"tiles of {name} from {run.start} on, where {position} are computed")
        position = position + run.count * run.tile
        if run is not runs[-1]:
            tree = peel(tree, name, run.count * run.tile, number)
        loop = _loop(tree, name, number)
        tail = _EXACT
        if run.last is not None:
            tail = TailStrategy.SHIFT_INWARDS_STORE_ONCE if run.once else TailStrategy.SHIFT_INWARDS
        elif run.end is not None:
            tail = _GUARD
        if run.count == 1 and loop.extent == run.tile:
            tiles.append(name if run.tile > 1 else None)
        elif run.tile == 1 and tail is _EXACT:
            tiles.append(None)
        else:
            tree = split(tree, name, run.tile, tail, number)
            loop = _loop(tree, f"{name}.o", number)
            tiles.append(f"{name}.i")
        count = 1 if run.count == 1 else loop.extent
        if same(count, run.count) is not True:
            raise ScheduleError(f"{run.count} tiles of {name}, where {count} compute all iterations")
    return tree, tiles


def _loop(tree: LoopTree, name: str, branch: int) -> TreeLoop:
    return next(loop for loop in tree.branches()[branch] if loop.name == name)
