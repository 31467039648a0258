"""Loop trees: the loops of a nest in the order in which they run, as transformations have made them.

A tree begins with one serial loop for each loop of the nest. ``loop_transformations.py`` has the primitives that change
it, each with its condition. Most trees are one chain of loops. A peeled loop becomes two loops, one after the other,
each with the loops that were inside; the innermost loops are the *leaves*, and a leaf with the loops around it is a
*branch*.

The nest's stages run inside each leaf. Accumulators of a reduction live around the outermost reduction loop of a
branch: they begin there with the initial values, one for each point of the parallel loops inside, and the stages after
the reduction run when that loop ends. Reduction loops that follow one another, as the parts of a peeled one, share
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import Enum

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.nest import Nest
from landbridge.records import record
from landbridge.sizes.size import Extent


class LoopKind(Enum):
    """How the iterations of a loop run."""

    SERIAL = "for"
    """One after the other."""
    PARALLEL = "parallel"
    """In tasks, which threads take in any order."""
    UNROLLED = "unrolled"
    """One after the other, each in code of its own."""
    VECTORIZED = "vectorized"
    """As the lanes of a vector."""
    VECTOR_REDUCTION = "vector reduction"
    """As the lanes of a vector of accumulators, which are combined at the end."""


class TailStrategy(Enum):
    """What happens to the iterations that are left over when a loop is split (Halide: ``TailStrategy``)."""

    EXACT = "exact"
    """There are none: the factor divides the extent for all sizes."""
    PEEL = "peel"
    """They get a loop of their own after the others (a loop partition of TVM)."""
    GUARD_WITH_IF = "guard"
    """The last tile tests each iteration; a vector is masked."""
    SHIFT_INWARDS = "shift inwards"
    """The last tile begins earlier and computes some iterations again. A loop shorter than a tile is guarded."""
    SHIFT_INWARDS_STORE_ONCE = "shift inwards, store once"
    """As ``SHIFT_INWARDS``, but what is computed again is not stored (Halide: ``ShiftInwardsAndBlend``)."""

    @property
    def shifts(self) -> bool:
        """Returns whether the last tile begins earlier than a multiple of the factor."""
        return self in (TailStrategy.SHIFT_INWARDS, TailStrategy.SHIFT_INWARDS_STORE_ONCE)

    @property
    def is_guarded(self) -> bool:
        """Returns whether an iteration may have to be left out."""
        return self.shifts or self is TailStrategy.GUARD_WITH_IF


@record(frozen=True)
class Split:
    """The index of loop ``name``, which ``outer`` and ``inner`` replace: ``start + outer * factor + inner``.

    ``extent`` is the number of iterations of the loop that was split. ``tail`` says what happens where the sum without
    ``start`` is not less.
    """

    name: str
    outer: str
    inner: str
    start: Extent
    extent: Extent
    factor: Extent
    tail: TailStrategy


@record(frozen=True)
class Prefetch:
    """Loads into cache what ``read`` reads ``distance`` iterations later."""

    read: ElementAccess
    distance: int


@record(frozen=True)
class TreeLoop:
    """The iterations ``start .. start + extent`` of index ``name``, a part of loop ``dim`` of the nest.

    ``separate``: each iteration has accumulators of its own, which are combined after the last one. ``staged`` reads
    are copied to local memory at the beginning of each iteration. ``splits`` are those whose outer loop this is.
    ``inside`` are the loops inside, in order; there are several if one was peeled, and none in a leaf.
    """

    name: str
    dim: int
    extent: Extent
    start: Extent = 0
    kind: LoopKind = LoopKind.SERIAL
    separate: bool = False
    staged: tuple[ElementAccess, ...] = ()
    prefetches: tuple[Prefetch, ...] = ()
    splits: tuple[Split, ...] = ()
    inside: tuple[TreeLoop, ...] = ()

    def branches(self) -> Iterator[tuple[TreeLoop, ...]]:
        """Yields each chain of loops from this one to a leaf."""
        if not self.inside:
            yield (self,)
        for loop in self.inside:
            for branch in loop.branches():
                yield (self, *branch)


@record(frozen=True)
class LoopTree:
    """The loops around the stages of ``nest``; ``loops`` are the outermost, in order.

    ``is_in_place``: a result may have the memory of an operand, whose elements it overwrites.
    """

    nest: Nest
    loops: tuple[TreeLoop, ...]
    is_in_place: bool = False

    def branches(self) -> list[tuple[TreeLoop, ...]]:
        """Returns the chains of loops from the outermost to a leaf; one empty chain if there are no loops."""
        return [branch for loop in self.loops for branch in loop.branches()] or [()]

    def reduces(self, loop: TreeLoop) -> bool:
        """Returns whether ``loop`` is a part of a reduction loop."""
        return self.nest.dims[loop.dim].reduction


def loop_tree(nest: Nest, prefix: int = 0, *, is_in_place: bool = False) -> LoopTree:
    """Returns the tree of serial loops ``d0``, ``d1``, ... in the order of ``nest``; its first ``prefix`` loops are
    around it and not in the tree.
    """
    numbered = [TreeLoop(f"d{d}", d, nest.dims[d].extent) for d in range(prefix, len(nest.dims))]
    return LoopTree(nest, chained(numbered, ()), is_in_place)


def splits_around(chain: Sequence[TreeLoop]) -> list[Split]:
    """Returns the splits that made the loops of ``chain``, in the order in which they were made."""
    splits = [split for loop in chain for split in loop.splits]
    parts = {name for split in splits for name in (split.outer, split.inner)}
    found = [split for split in splits if split.name not in parts]
    for split in found:  # grows by the splits of its two loops
        found += [each for each in splits if each.name in (split.outer, split.inner)]
    return found


def chained(loops: Sequence[TreeLoop], inside: tuple[TreeLoop, ...]) -> tuple[TreeLoop, ...]:
    """Returns ``loops``, each inside the one before it, around ``inside``."""
    for loop in reversed(loops):
        inside = (replace(loop, inside=inside),)
    return inside
