"""Prints loop trees as indented loops, as Halide's ``print_loop_nest`` does."""

from __future__ import annotations

from collections.abc import Iterator

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.combiners import combiner
from landbridge.passes.lower.loop_tree import LoopTree, TailStrategy, TreeLoop


def loop_nest_text(tree: LoopTree) -> str:
    """Returns a line for each loop of ``tree``, indented by its depth, and the stages that run inside."""
    return "\n".join(_lines(tree, tree.loops, "", within_reduction=False))


def _lines(tree: LoopTree, loops: tuple[TreeLoop, ...], indent: str, *, within_reduction: bool) -> Iterator[str]:
    if not loops:
        yield indent + _leaf(tree)
    reduces = any(tree.reduces(loop) for loop in loops)
    for loop in loops:
        yield indent + _line(tree, loop)
        yield from _lines(tree, loop.inside, indent + "  ", within_reduction=within_reduction or reduces)
    after = tree.nest.stages[1:] if tree.nest.reduction is not None else ()
    if after and not within_reduction and (reduces or not loops):
        yield f"{indent}{_stages(len(after))} on the results"


def _line(tree: LoopTree, loop: TreeLoop) -> str:
    facts = [f"{loop.kind.value} {loop.name} in {loop.start} .. {loop.start + loop.extent}"]
    facts += [f"{split.tail.value} at {split.extent}" for split in loop.splits if split.tail is not TailStrategy.EXACT]
    if loop.separate:
        facts.append("with accumulators of its own")
    facts += [f"copies {_named(tree, read)}" for read in loop.staged]
    facts += [f"prefetches {_named(tree, each.read)} {each.distance} ahead" for each in loop.prefetches]
    return ", ".join(facts)


def _named(tree: LoopTree, read: ElementAccess) -> str:
    """Returns the number of ``read`` among the accesses of the nest."""
    return next(f"access {number}" for number, each in enumerate(tree.nest.accesses()) if each is read)


def _leaf(tree: LoopTree) -> str:
    main = tree.nest.reduction
    if tree.nest.is_scan:
        return "running fold"
    if main is not None:
        return f"reduction by {(combiner(main) or 'a body of its own').removeprefix('arith.')}"
    return _stages(len(tree.nest.stages))


def _stages(count: int) -> str:
    return f"{count} elementwise stage{'s' * (count > 1)}"
