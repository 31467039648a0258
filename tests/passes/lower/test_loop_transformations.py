"""Loop transformations: what each makes of a tree, which it refuses, and that none changes a result."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from landbridge.errors import ScheduleError
from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.loop_nest_text import loop_nest_text
from landbridge.passes.lower.loop_transformations import (
    parallelize,
    peel,
    prefetch,
    reorder,
    rfactor,
    split,
    stage,
    unroll,
    vectorize,
)
from landbridge.passes.lower.loop_tree import LoopTree, TailStrategy, loop_tree
from landbridge.sizes.size import dimension

from .tree_nests import NESTS, convolution, elementwise, in_place, largest, product, results, reversed_in_place, scan

EXACT, PEEL, GUARD = TailStrategy.EXACT, TailStrategy.PEEL, TailStrategy.GUARD_WITH_IF
SHIFT, ONCE = TailStrategy.SHIFT_INWARDS, TailStrategy.SHIFT_INWARDS_STORE_ONCE


def read_of(tree: LoopTree, number: int) -> ElementAccess:
    found = [r for r in tree.nest.stages[0].reads if isinstance(r, ElementAccess)]
    return found[number]


def made(tree: LoopTree, *changes: Callable[[LoopTree], LoopTree]) -> LoopTree:
    for change in changes:
        tree = change(tree)
    return tree


#: A name; the tree that is changed; the changes; and the tree that they make.
CASES: dict[str, tuple[LoopTree, list[Callable[[LoopTree], LoopTree]], str]] = {
    "an exact split": (
        loop_tree(elementwise((6, 4), "float32")),
        [lambda t: split(t, "d0", 3)],
        """
for d0.o in 0 .. 2
  for d0.i in 0 .. 3
    for d1 in 0 .. 4
      2 elementwise stages""",
    ),
    "a split whose rest is peeled": (
        loop_tree(elementwise((7, 4), "float32")),
        [lambda t: split(t, "d0", 3, PEEL)],
        """
for d0.o in 0 .. 2
  for d0.i in 0 .. 3
    for d1 in 0 .. 4
      2 elementwise stages
for d0 in 6 .. 7
  for d1 in 0 .. 4
    2 elementwise stages""",
    ),
    "a split with a guard": (
        loop_tree(elementwise((7, 4), "float32")),
        [lambda t: split(t, "d0", 3, GUARD)],
        """
for d0.o in 0 .. 3, guard at 7
  for d0.i in 0 .. 3
    for d1 in 0 .. 4
      2 elementwise stages""",
    ),
    "a split that shifts inwards": (
        loop_tree(product((7, 4, 3), "float32")),
        [lambda t: split(t, "d0", 3, SHIFT)],
        """
for d0.o in 0 .. 3, shift inwards at 7
  for d0.i in 0 .. 3
    for d1 in 0 .. 4
      for d2 in 0 .. 3
        reduction by addf
      1 elementwise stage on the results""",
    ),
    "a peeled loop": (
        loop_tree(largest((5, 3, 2), "float32")),
        [lambda t: peel(t, "d1", 1)],
        """
for d0 in 0 .. 5
  for d1 in 0 .. 1
    for d2 in 0 .. 2
      reduction by maximumf
  for d1 in 1 .. 3
    for d2 in 0 .. 2
      reduction by maximumf""",
    ),
    "a register tile": (
        loop_tree(product((6, 32, 8), "float32")),
        [
            lambda t: split(t, "d1", 16),
            lambda t: split(t, "d0", 3),
            lambda t: reorder(t, ["d1.o", "d0.o", "d2", "d0.i", "d1.i"]),
            lambda t: vectorize(t, "d1.i"),
            lambda t: unroll(t, "d0.i"),
            lambda t: parallelize(t, "d1.o"),
        ],
        """
parallel d1.o in 0 .. 2
  for d0.o in 0 .. 2
    for d2 in 0 .. 8
      unrolled d0.i in 0 .. 3
        vectorized d1.i in 0 .. 16
          reduction by addf
    1 elementwise stage on the results""",
    ),
    "lanes along a sum": (
        loop_tree(product((6, 8, 32), "float32")),
        [lambda t: split(t, "d2", 8), lambda t: rfactor(t, "d2.i"), lambda t: vectorize(t, "d2.i")],
        """
for d0 in 0 .. 6
  for d1 in 0 .. 8
    for d2.o in 0 .. 4
      vector reduction d2.i in 0 .. 8, with accumulators of its own
        reduction by addf
    1 elementwise stage on the results""",
    ),
    "copied columns": (
        loop_tree(product((6, 8, 32), "float32")),
        [
            lambda t: reorder(t, ["d1", "d0"]),
            lambda t: stage(t, read_of(t, 1), "d1"),
            lambda t: prefetch(t, read_of(t, 0), "d0", 2),
        ],
        """
for d1 in 0 .. 8, copies access 1
  for d0 in 0 .. 6, prefetches access 0 2 ahead
    for d2 in 0 .. 32
      reduction by addf
    1 elementwise stage on the results""",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_transformation_makes_this_tree(case: str) -> None:
    tree, changes, expected = CASES[case]
    changed = made(tree, *changes)
    assert loop_nest_text(changed) == expected.strip()
    for found, plain in zip(results(changed), results(tree), strict=True):
        if case == "lanes along a sum":  # the order of the additions is another one: 32 terms of about 1
            np.testing.assert_allclose(found, plain, rtol=0, atol=32 * 2.0**-22)
        else:
            np.testing.assert_array_equal(found, plain)


def test_the_loops_of_a_nest_compute_what_numpy_does() -> None:
    a, b, y = results(loop_tree(product((5, 4, 3), "int32")))
    np.testing.assert_array_equal(y.reshape(5, 4), -(a.reshape(5, 3) @ b.reshape(3, 4)))
    x, w, y = results(loop_tree(convolution((5, 4, 3, 3), "int32")))
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x.reshape(5, 4), 1), (3, 3))
    np.testing.assert_array_equal(y.reshape(5, 4), np.einsum("ijrc,rc->ij", windows, w.reshape(3, 3)))
    x, y, last = results(loop_tree(scan((5, 4), "int32")))
    np.testing.assert_array_equal(y.reshape(5, 4), np.cumsum(x.reshape(5, 4), 0))
    np.testing.assert_array_equal(last, y[-4:])


OPEN = loop_tree(elementwise((dimension("T"), 4), "float32"))
#: What is refused, by what the message says.
ILLEGAL: dict[str, tuple[LoopTree, Callable[[LoopTree], LoopTree]]] = {
    "3 are left over": (loop_tree(elementwise((7, 4), "float32")), lambda t: split(t, "d0", 4)),
    "not known to be at least 1": (loop_tree(elementwise((7, 4), "float32")), lambda t: split(t, "d0", 0)),
    "counted twice": (loop_tree(product((5, 4, 7), "float32")), lambda t: split(t, "d2", 4, SHIFT)),
    "read again what it has overwritten": (
        loop_tree(in_place((7, 4), "float32")),
        lambda t: split(t, "d0", 4, SHIFT),
    ),
    "stores in every iteration": (loop_tree(scan((5, 7), "float32")), lambda t: split(t, "d1", 4, ONCE)),
    "add their terms twice": (
        loop_tree(product((7, 4, 3), "float32")),
        lambda t: reorder(split(t, "d0", 4, SHIFT), ["d1", "d2", "d0.o", "d0.i"]),
    ),
    "rounds otherwise": (
        loop_tree(convolution((5, 4, 3, 3), "float32")),
        lambda t: reorder(t, ["d3", "d2"]),
    ),
    "have to run in their order": (
        loop_tree(scan((6, 4), "float32")),
        lambda t: reorder(split(t, "d0", 3), ["d0.i", "d0.o"], reassociates=True),
    ),
    "not perfectly nested": (
        loop_tree(product((5, 4, 3), "float32")),
        lambda t: reorder(peel(t, "d1", 2), ["d2", "d0"]),
    ),
    "the same accumulators": (
        loop_tree(product((5, 4, 3), "float32")),
        lambda t: reorder(peel(reorder(t, ["d2", "d1"]), "d2", 1), ["d1", "d2"], 0),
    ),
    "one accumulator": (loop_tree(product((5, 4, 8), "float32")), lambda t: vectorize(t, "d2")),
    "is inside it": (loop_tree(product((5, 4, 8), "float32")), lambda t: vectorize(t, "d1")),
    "it is no reduction loop": (loop_tree(product((5, 4, 8), "float32")), lambda t: rfactor(t, "d1")),
    "depend on each other": (loop_tree(largest((5, 4, 8), "float32")), lambda t: parallelize(t, "d1")),
    "is not parallel": (loop_tree(elementwise((7, 4), "float32")), lambda t: parallelize(t, "d1")),
    "what another one has written": (
        loop_tree(reversed_in_place((7,), "float32")),
        lambda t: vectorize(t, "d0"),
    ),
    "a vector, would be around": (
        loop_tree(elementwise((7, 4), "float32")),
        lambda t: reorder(vectorize(t, "d1"), ["d1", "d0"]),
    ),
    "a parallel loop, would be inside": (
        loop_tree(elementwise((7, 4), "float32")),
        lambda t: reorder(parallelize(t, "d0"), ["d1", "d0"]),
    ),
    "is unrolled already": (loop_tree(elementwise((7, 4), "float32")), lambda t: split(unroll(t, "d0"), "d0", 7)),
    "not known to have so many": (loop_tree(elementwise((7, 4), "float32")), lambda t: peel(t, "d0", 8)),
    "out of date": (
        loop_tree(in_place((7, 4), "float32")),
        lambda t: stage(t, read_of(t, 0), "d0"),
    ),
    "does not advance evenly": (
        loop_tree(product((5, 4, 8), "float32")),
        lambda t: prefetch(t, read_of(t, 1), "d0", 1),
    ),
    "are left over": (OPEN, lambda t: split(t, "d0", 4)),
    "no number is known": (OPEN, lambda t: unroll(t, "d0")),
    "have to be stored once": (
        loop_tree(elementwise((7, 4), "float32"), is_in_place=True),
        lambda t: split(t, "d0", 4, SHIFT),
    ),
    "no loop d5": (loop_tree(elementwise((7, 4), "float32")), lambda t: unroll(t, "d5")),
    "no branch 1": (loop_tree(elementwise((7, 4), "float32")), lambda t: unroll(t, "d0", 1)),
}


@pytest.mark.parametrize("message", ILLEGAL)
def test_what_would_change_a_result_is_refused(message: str) -> None:
    tree, change = ILLEGAL[message]
    with pytest.raises(ScheduleError, match=message):
        change(tree)


def test_an_open_loop_is_split_where_the_tail_is_covered() -> None:
    assert loop_nest_text(split(OPEN, "d0", 4, PEEL)).splitlines()[0] == "for d0.o in 0 .. ((T)//4)"
    assert (
        loop_nest_text(split(OPEN, "d0", 4, SHIFT)).splitlines()[0]
        == "for d0.o in 0 .. ((T + 3)//4), shift inwards at T"
    )
    times = loop_tree(elementwise((4 * dimension("T"), 4), "float32"))
    assert loop_nest_text(split(times, "d0", 4)).splitlines()[0] == "for d0.o in 0 .. T"


PRIMITIVES = ["split", "split", "peel", "reorder", "reorder", "unroll", "vectorize", "parallelize", "rfactor", "stage"]


def changed_at_random(tree: LoopTree, data: st.DataObject) -> tuple[LoopTree, bool]:
    """``tree`` after one transformation, and whether it may change the order of a float sum. Raises ScheduleError where
    it is not legal."""
    branches = tree.branches()
    branch = data.draw(st.none() | st.integers(0, len(branches) - 1), "branch")
    names = sorted({loop.name for chain in branches for loop in chain})
    name = data.draw(st.sampled_from(names), "loop")
    what = data.draw(
        st.sampled_from(["split", "peel", "reorder", "unroll", "vectorize", "parallelize", "rfactor", "stage"]), "what"
    )
    if what == "split":
        tail = data.draw(st.sampled_from(TailStrategy), "tail")
        return split(tree, name, data.draw(st.integers(1, 5), "factor"), tail, branch), False
    if what == "peel":
        return peel(tree, name, data.draw(st.integers(0, 5), "at"), branch), False
    if what == "reorder":
        chain = [loop.name for loop in branches[branch or 0]]
        order = data.draw(st.permutations(chain), "order")[: data.draw(st.integers(2, 4), "loops")]
        reassociates = data.draw(st.booleans(), "reassociates")
        return reorder(tree, order, branch, reassociates=reassociates), reassociates
    if what == "rfactor":
        return rfactor(tree, name, branch), True
    if what == "stage":
        reads = [r for s in tree.nest.stages for r in s.reads if isinstance(r, ElementAccess)]
        return stage(tree, reads[data.draw(st.integers(0, len(reads) - 1), "read")], name, branch), False
    return {"unroll": unroll, "vectorize": vectorize, "parallelize": parallelize}[what](tree, name, branch), False


@pytest.mark.parametrize("kind", NESTS)
@settings(max_examples=120, deadline=None)
@given(dtype=st.sampled_from(["int32", "float32"]), data=st.data())
def test_no_sequence_of_transformations_changes_a_result(kind: str, dtype: str, data: st.DataObject) -> None:
    """Integers to the bit, and floats too where the order of their sums is kept."""
    build, loops = NESTS[kind]
    tree = plain = loop_tree(
        build(tuple(data.draw(st.integers(2, 6 if loops < 4 else 4)) for _ in range(loops)), dtype)
    )
    reassociates, taken = False, 0
    for _ in range(data.draw(st.integers(1, 8), "steps")):
        try:
            tree, reorders = changed_at_random(tree, data)
        except ScheduleError:
            continue
        reassociates, taken = reassociates or reorders, taken + 1
    event(f"{taken} transformations")
    for found, wanted in zip(results(tree), results(plain), strict=True):
        if dtype == "float32" and reassociates:  # sums of at most 25 terms below 10 in another order
            np.testing.assert_allclose(found, wanted, rtol=0, atol=25 * 25 * 10 * 2.0**-24)
        else:
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("branch", [0, 1])
def test_one_part_of_a_peeled_loop_may_have_its_sum_around_it(branch: int) -> None:
    plain = loop_tree(product((2, 2, 3), "float32"))
    tree = reorder(peel(plain, "d0", 1), ["d2", "d1", "d0"], branch)
    for found, wanted in zip(results(tree), results(plain), strict=True):
        np.testing.assert_array_equal(found, wanted)
