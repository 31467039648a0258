"""The primitives of schedules: each returns a loop tree that computes the same, or raises ScheduleError.

Every primitive takes the name of a loop. Where several branches have a loop of this name, all of them change;
``branch``, the number of a leaf, selects the one around that leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

from xdsl.dialects import memref
from xdsl.ir import SSAValue

from landbridge.errors import ScheduleError
from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.combiners import combiner
from landbridge.passes.lower.loop_tree import (
    LoopKind,
    LoopTree,
    Prefetch,
    Split,
    TailStrategy,
    TreeLoop,
    chained,
    splits_around,
)
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.scan import fold_of
from landbridge.sizes.size import Extent, at_least, ceildiv, same

#: Returns what replaces a loop; it also gets the loops around it.
_Change: TypeAlias = Callable[[TreeLoop, tuple[TreeLoop, ...]], tuple[TreeLoop, ...]]


def split(
    tree: LoopTree, name: str, factor: Extent, tail: TailStrategy = TailStrategy.EXACT, branch: int | None = None
) -> LoopTree:
    """Cut a loop into tiles (strip mining; ``split`` in Halide and TVM): ``name.o`` counts tiles, ``name.i`` the
    ``factor`` iterations of one.

    Legal if the tail is covered: ``EXACT`` needs a factor that divides the extent for all sizes. A tail that shifts
    inwards computes iterations again, which a reduction must not, nor a nest that reads what it has overwritten, except
    where results are stored once.
    """

    def cut(loop: TreeLoop, around: tuple[TreeLoop, ...]) -> tuple[TreeLoop, ...]:
        _require_serial(loop, "split")
        if at_least(factor, 1) is not True:
            raise ScheduleError(f"split of {name} by {factor}, which is not known to be at least 1")
        left = loop.extent % factor
        if tail is TailStrategy.PEEL:
            whole, rest = _parted(loop, loop.extent - left, left)
            return (*(part for each in whole for part in tiles(each, each.extent // factor, TailStrategy.EXACT)), *rest)
        if tail is TailStrategy.EXACT and same(left, 0) is not True:
            raise ScheduleError(
                f"split of {name}, {loop.extent} iterations, by {factor}: {left} are left over. "
                f"A tail strategy has to cover them: peel, guard or shift inwards"
            )
        if tail.shifts:
            _require_repeatable(tree, loop, tail)
        parts = tiles(loop, ceildiv(loop.extent, factor), tail)
        _require_each_term_once(tree, (*around, *parts))
        return parts

    def tiles(loop: TreeLoop, count: Extent, tail: TailStrategy) -> tuple[TreeLoop, ...]:
        outer, inner = f"{name}.o", f"{name}.i"
        taken = Split(name, outer, inner, loop.start, loop.extent, factor, tail)
        tile = replace(loop, name=inner, start=0, extent=factor, splits=())
        return (
            replace(
                loop, name=outer, start=0, extent=count, staged=(), prefetches=(), splits=(*loop.splits, taken),
                inside=(tile,),
            ),
        )  # fmt: skip

    return _changed(tree, name, branch, cut)


def peel(tree: LoopTree, name: str, at: Extent, branch: int | None = None) -> LoopTree:
    """Run the iterations from ``at`` on in a loop of their own, after the others (index set splitting; a loop partition
    in TVM).

    Legal if the loop is known to have at least ``at`` iterations. The second loop has the same name, in a branch of its
    own.
    """

    def cut(loop: TreeLoop, around: tuple[TreeLoop, ...]) -> tuple[TreeLoop, ...]:
        _require_serial(loop, "peel")
        if at_least(at, 0) is not True or at_least(loop.extent, at) is not True:
            raise ScheduleError(
                f"peel of {name} at {at}: it is not known to have so many of its {loop.extent} iterations"
            )
        first, rest = _parted(loop, at, loop.extent - at)
        return (*first, *rest)

    return _changed(tree, name, branch, cut)


def reorder(tree: LoopTree, names: Sequence[str], branch: int | None = None, *, reassociates: bool = False) -> LoopTree:
    """Run loops in the order of ``names``, the first outermost (loop interchange; ``reorder`` in Halide and TVM).

    The loops must be perfectly nested; loops between them stay where they are. Legal if no dependence is carried: the
    reduction loops keep their order, unless terms may be combined in any order without another result, or each
    iteration has accumulators of its own. ``reassociates`` allows another order of the terms of a float sum, whose
    result is then another one by rounding; never that of a running fold.
    """
    wanted, what = set(names), f"reorder of {', '.join(names)}"

    def permuted(top: TreeLoop, around: tuple[TreeLoop, ...]) -> tuple[TreeLoop, ...]:
        chain = [top]
        while not wanted <= {loop.name for loop in chain}:
            if len(chain[-1].inside) != 1:
                missing = sorted(wanted - {loop.name for loop in chain})
                raise ScheduleError(f"{what}: {', '.join(missing)} is not perfectly nested inside")
            chain.append(chain[-1].inside[0])
        if held := next((loop for loop in chain if loop.staged or loop.prefetches), None):
            raise ScheduleError(f"reorder after a copy or a prefetch at {held.name}; these come last")
        by_name = {loop.name: loop for loop in chain}
        following = iter(names)
        order = [by_name[next(following)] if loop.name in wanted else loop for loop in chain]
        if order != chain:
            _require_independent(tree, what)
        if _in_order(tree, order) != _in_order(tree, chain):
            _require_any_order(tree, what, reassociates=reassociates)
        siblings = around[-1].inside if around else tree.loops
        shares_sums = len(siblings) > 1 and tree.reduces(top) and not any(tree.reduces(loop) for loop in around)
        if shares_sums and not tree.reduces(order[0]):
            raise ScheduleError(f"{what}: {top.name} is peeled, and its parts add to the same accumulators")
        _require_places(what, [*around, *order])
        _require_each_term_once(tree, (*around, *order))
        return chained(order, chain[-1].inside)

    if not names:
        return tree
    if len(wanted) != len(names):
        raise ScheduleError(f"{what}: a name occurs twice")
    tops = (next((loop.name for loop in chain if loop.name in wanted), None) for chain in _selected(tree, branch))
    found = next((name for name in tops if name is not None), names[0])
    return _changed(tree, found, branch, permuted)


def unroll(tree: LoopTree, name: str, branch: int | None = None) -> LoopTree:
    """Write the iterations of a loop out (``unroll`` in Halide and TVM). Legal if their number is known."""

    def unrolled(loop: TreeLoop, around: tuple[TreeLoop, ...]) -> tuple[TreeLoop, ...]:
        _require_serial(loop, "unroll")
        _require_number(loop, "unroll")
        return (replace(loop, kind=LoopKind.UNROLLED),)

    return _changed(tree, name, branch, unrolled)


def vectorize(tree: LoopTree, name: str, branch: int | None = None) -> LoopTree:
    """Make the iterations of an innermost loop the lanes of a vector (``vectorize`` in Halide and TVM).

    Legal if their number is known, if no other loop around them is vectorized, and if no dependence is carried: a
    reduction has accumulators of its own in each lane, by ``rfactor``; a running fold is associative.
    """

    def lanes(loop: TreeLoop, around: tuple[TreeLoop, ...]) -> tuple[TreeLoop, ...]:
        _require_serial(loop, "vectorize")
        _require_number(loop, "vectorize")
        if loop.inside:
            raise ScheduleError(f"vectorize {name}: {loop.inside[0].name} is inside it; reorder them first")
        if not tree.reduces(loop):
            _require_independent(tree, f"vectorize {name}")
            return (replace(loop, kind=LoopKind.VECTORIZED),)
        main = tree.nest.stages[0]
        if tree.nest.is_scan:
            if fold_of(main) is None:
                raise ScheduleError(f"vectorize {name}: each state of the running fold is computed from the one before")
        elif not loop.separate:
            raise ScheduleError(f"vectorize {name}: its iterations add to one accumulator; rfactor gives each its own")
        return (replace(loop, kind=LoopKind.VECTOR_REDUCTION),)

    return _changed(tree, name, branch, lanes)


def parallelize(tree: LoopTree, name: str, branch: int | None = None) -> LoopTree:
    """Let threads run the iterations of a loop in any order (``parallel`` in Halide and TVM).

    Legal if no dependence is carried, and if all loops around it are parallel.
    """

    def tasks(loop: TreeLoop, around: tuple[TreeLoop, ...]) -> tuple[TreeLoop, ...]:
        _require_serial(loop, "parallelize")
        if tree.reduces(loop):
            raise ScheduleError(f"parallelize {name}: it is a reduction loop, whose iterations depend on each other")
        _require_independent(tree, f"parallelize {name}")
        if (serial := next((each for each in around if each.kind is not LoopKind.PARALLEL), None)) is not None:
            raise ScheduleError(f"parallelize {name}: {serial.name} around it is not parallel")
        return (replace(loop, kind=LoopKind.PARALLEL),)

    return _changed(tree, name, branch, tasks)


def rfactor(tree: LoopTree, name: str, branch: int | None = None) -> LoopTree:
    """Give each iteration of a reduction loop accumulators of its own, which are combined in the end (``rfactor`` in
    Halide and TVM; reassociation).

    Legal if terms may be combined in any order. A float sum gets another result by rounding: this primitive asks for
    that, as no other does.
    """

    def separate(loop: TreeLoop, around: tuple[TreeLoop, ...]) -> tuple[TreeLoop, ...]:
        if not tree.reduces(loop):
            raise ScheduleError(f"rfactor of {name}: it is no reduction loop, and has a result for each iteration")
        _require_any_order(tree, f"rfactor of {name}", reassociates=True)
        return (replace(loop, separate=True),)

    return _changed(tree, name, branch, separate)


def stage(tree: LoopTree, read: ElementAccess, name: str, branch: int | None = None) -> LoopTree:
    """Copy what ``read`` reads in an iteration of loop ``name`` to local memory when it begins (``cache_read`` in TVM;
    ``in().compute_at`` in Halide; array packing).

    Legal if the nest does not write the buffer, and if the number of elements is known: the index is linear in the
    loops inside, and their extents are numbers.
    """

    def copied(loop: TreeLoop, around: tuple[TreeLoop, ...]) -> tuple[TreeLoop, ...]:
        if not any(each is read for each in tree.nest.accesses()):
            raise ScheduleError(f"a copy at {name} of what the nest does not read")
        if read.buffer in _written(tree.nest):
            raise ScheduleError(f"a copy at {name} of a buffer that the nest writes: it would be out of date")
        for inner in {each for chain in loop.branches() for each in chain[1:]}:
            if read.index.nonlinear_in(inner.dim):
                raise ScheduleError(f"a copy at {name}: the index is not linear in {inner.name}")
            if read.uses(inner.dim):
                _require_number(inner, f"a copy at {name} inside of which")
        return (replace(loop, staged=(*loop.staged, read)),)

    return _changed(tree, name, branch, copied)


def prefetch(tree: LoopTree, read: ElementAccess, name: str, distance: int, branch: int | None = None) -> LoopTree:
    """Load into cache what ``read`` reads ``distance`` iterations of loop ``name`` later (``prefetch`` in Halide).

    Legal if the index is linear in the loop and changes with it; results are the same whatever is loaded.
    """

    def ahead(loop: TreeLoop, around: tuple[TreeLoop, ...]) -> tuple[TreeLoop, ...]:
        if distance < 1:
            raise ScheduleError(f"a prefetch of what is read {distance} iterations later; at least 1 is ahead")
        if read.index.nonlinear_in(loop.dim) or not read.uses(loop.dim):
            raise ScheduleError(f"a prefetch at {name} of what does not advance evenly with it")
        return (replace(loop, prefetches=(*loop.prefetches, Prefetch(read, distance))),)

    return _changed(tree, name, branch, ahead)


def _changed(tree: LoopTree, name: str, branch: int | None, change: _Change) -> LoopTree:
    """Returns ``tree`` with each selected loop called ``name`` replaced by what ``change`` returns for it."""
    if not any(loop.name == name for chain in _selected(tree, branch) for loop in chain):
        known = ", ".join(dict.fromkeys(loop.name for chain in _selected(tree, branch) for loop in chain)) or "none"
        where = "" if branch is None else f" in branch {branch}"
        raise ScheduleError(f"no loop {name}{where}; its loops are {known}")

    def within(loops: tuple[TreeLoop, ...], around: tuple[TreeLoop, ...], first: int) -> tuple[TreeLoop, ...]:
        result: list[TreeLoop] = []
        for loop in loops:
            leaves = sum(1 for _ in loop.branches())
            if loop.name == name and (branch is None or first <= branch < first + leaves):
                result += change(loop, around)
            else:
                result.append(replace(loop, inside=within(loop.inside, (*around, loop), first)))
            first += leaves
        return tuple(result)

    return replace(tree, loops=within(tree.loops, (), 0))


def _selected(tree: LoopTree, branch: int | None) -> list[tuple[TreeLoop, ...]]:
    """Returns the branches of ``tree`` that a primitive may change."""
    branches = tree.branches()
    if branch is None:
        return branches
    if not 0 <= branch < len(branches):
        raise ScheduleError(f"no branch {branch}: there are {len(branches)}")
    return [branches[branch]]


def _parted(loop: TreeLoop, at: Extent, left: Extent) -> tuple[tuple[TreeLoop, ...], tuple[TreeLoop, ...]]:
    """Returns the first ``at`` iterations of ``loop`` and the ``left`` ones after them; an empty part is no loop."""
    first, rest = replace(loop, extent=at), replace(loop, start=loop.start + at, extent=left)
    if same(left, 0) is True:
        return (first,), ()
    return (() if same(at, 0) is True else (first,)), (rest,)


def _require_serial(loop: TreeLoop, what: str) -> None:
    if loop.kind is not LoopKind.SERIAL:
        raise ScheduleError(f"{what} {loop.name}: it is {loop.kind.value} already; only a serial loop is changed")


def _require_places(what: str, chain: Sequence[TreeLoop]) -> None:
    """Raise ScheduleError unless parallel loops are outermost in ``chain`` and a vectorized one is innermost."""
    for outer, inner in pairwise(chain):
        if inner.kind is LoopKind.PARALLEL and outer.kind is not LoopKind.PARALLEL:
            raise ScheduleError(f"{what}: {inner.name}, a parallel loop, would be inside {outer.name}")
        if outer.kind in (LoopKind.VECTORIZED, LoopKind.VECTOR_REDUCTION):
            raise ScheduleError(f"{what}: {outer.name}, a vector, would be around {inner.name}")


def _require_number(loop: TreeLoop, what: str) -> None:
    if not isinstance(loop.extent, int):
        raise ScheduleError(
            f"{what} {loop.name}: it has {loop.extent} iterations, and no number is known; split it first"
        )


def _written(nest: Nest) -> set[SSAValue]:
    """Returns the buffers that ``nest`` writes."""
    stored = {w.buffer for s in nest.stages for w, stored in zip(s.writes, s.stored, strict=True) if stored}
    return stored | {op.memref for s in nest.stages for op in s.body.ops if isinstance(op, memref.StoreOp)}


def _require_repeatable(tree: LoopTree, loop: TreeLoop, tail: TailStrategy) -> None:
    """Raise ScheduleError if iterations of ``loop`` cannot be computed twice."""
    what, nest = f"split of {loop.name}, shifted inwards", tree.nest
    if tree.reduces(loop):
        raise ScheduleError(f"{what}: terms of a reduction would be counted twice; peel or guard them")
    if any(isinstance(op, memref.StoreOp) for s in nest.stages for op in s.body.ops):
        raise ScheduleError(f"{what}: a body that stores by itself would store twice; peel or guard it")
    read = {r.buffer for s in nest.stages for r in s.reads if isinstance(r, ElementAccess)} | nest.loaded()
    if tail is TailStrategy.SHIFT_INWARDS and (tree.is_in_place or read & _written(nest)):
        raise ScheduleError(f"{what}: it would read again what it has overwritten; results have to be stored once")
    if tail is TailStrategy.SHIFT_INWARDS_STORE_ONCE and nest.is_scan:
        raise ScheduleError(f"{what}, stored once: a running fold stores in every iteration; peel or guard it")


def _require_each_term_once(tree: LoopTree, chain: Sequence[TreeLoop]) -> None:
    """Raise ScheduleError if one accumulator gets the terms of two tiles of ``chain`` that overlap."""
    splits = splits_around(chain)
    overlapping = {split.outer for split in splits if split.tail.shifts}
    for split in splits:
        if split.name in overlapping:
            overlapping |= {split.outer, split.inner}
    names = [loop.name for loop in chain]
    reductions = [names.index(loop.name) for loop in chain if tree.reduces(loop)]
    for loop in chain:
        if reductions and loop.name in overlapping and names.index(loop.name) > reductions[0]:
            raise ScheduleError(
                f"{loop.name} inside {names[reductions[0]]}: tiles that overlap would add their terms twice"
            )


def _require_independent(tree: LoopTree, what: str) -> None:
    """Raise ScheduleError if an iteration may read what an iteration of another point has written."""
    stages = tree.nest.stages
    reads = [r for s in stages for r in s.reads if isinstance(r, ElementAccess)]
    for w in (w for s in stages for w, stored in zip(s.writes, s.stored, strict=True) if stored):
        if any(r.buffer is w.buffer and r.index != w.index for r in reads) or w.buffer in tree.nest.loaded():
            raise ScheduleError(f"{what}: an iteration may read what another one has written, and keeps its place")


def _in_order(tree: LoopTree, chain: Sequence[TreeLoop]) -> list[str]:
    """Returns the loops of ``chain`` whose order is that of the terms of an accumulator."""
    return [loop.name for loop in chain if tree.reduces(loop) and not loop.separate and loop.extent != 1]


def _require_any_order(tree: LoopTree, what: str, *, reassociates: bool) -> None:
    """Raise ScheduleError if the terms of the reduction have to be combined in their order."""
    main = tree.nest.stages[0]
    combine = None if tree.nest.is_scan else combiner(main)
    if combine is None:
        raise ScheduleError(f"{what}: the iterations of the reduction have to run in their order")
    exact = combine not in ("arith.addf", "arith.mulf")
    if not exact and not reassociates:
        raise ScheduleError(f"{what}: another order of a float sum rounds otherwise; rfactor asks for that")
