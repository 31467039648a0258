"""The trees of schedules: what they say, that they compute what the nest does, and which schedules are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from landbridge.errors import ScheduleError
from landbridge.passes.lower.candidates import schedule
from landbridge.passes.lower.loop_nest_text import loop_nest_text
from landbridge.passes.lower.loop_tree import loop_tree
from landbridge.passes.lower.narrow_columns import narrow_last_column
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.runs import Run
from landbridge.passes.lower.scan_schedule import scan_schedule
from landbridge.passes.lower.schedule import Schedule, VectorUnit
from landbridge.passes.lower.scheduled_tree import tree_of
from landbridge.sizes.size import dimension

from .tree_nests import NESTS, convolution, elementwise, in_place, product, results

#: Vectors of four floats, so that small nests have tiles of all kinds.
NARROW = VectorUnit(16, 16, unrolls=True, two_passes=True)


def scheduled(nest: Nest, machine: VectorUnit = NARROW) -> list[Schedule]:
    if nest.is_scan:
        return [scan_schedule(nest, machine)]
    found = schedule(nest, machine, repeats=True)
    return narrow_last_column(nest, found, machine, repeats=True)


@pytest.mark.parametrize("extents", [(7, 9, 5, 3), (4, 8, 16, 2), (13, 3, 33, 3), (1, 1, 1, 1), (2, 31, 70, 5)])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("kind", [kind for kind in NESTS if "place" not in kind])
def test_a_scheduled_tree_computes_what_its_nest_does(kind: str, dtype: str, extents: tuple[int, ...]) -> None:
    build, loops = NESTS[kind]
    nest = build(extents[:loops], dtype)
    tree = tree_of(nest, scheduled(nest), is_divided=True)
    for found, wanted in zip(results(tree), results(loop_tree(nest)), strict=True):
        if dtype == "float32":  # sums of at most 70 terms of about 1, in the order of the schedule
            np.testing.assert_allclose(found, wanted, rtol=0, atol=70 * 2.0**-21)
        else:
            np.testing.assert_array_equal(found, wanted)


def test_the_tree_of_a_product() -> None:
    nest = product((7, 12, 40), "float32")
    tree = tree_of(nest, scheduled(nest), is_divided=True)
    expected = """
for d0.o in 0 .. 1
  for d2 in 0 .. 40
    unrolled d0.i in 0 .. 4
      unrolled d1.o in 0 .. 3
        vectorized d1.i in 0 .. 4
          reduction by addf
  1 elementwise stage on the results
for d0.o in 0 .. 1, from 4 on
  for d2 in 0 .. 40
    unrolled d0.i in 0 .. 3
      unrolled d1.o in 0 .. 3
        vectorized d1.i in 0 .. 4
          reduction by addf
  1 elementwise stage on the results"""
    assert loop_nest_text(tree) == expected.strip()


def test_an_open_number_of_rows_ends_with_a_tile_that_begins_earlier() -> None:
    nest = product((dimension("T"), 16, 8), "float32")
    text = loop_nest_text(tree_of(nest, scheduled(nest)))
    assert "shift inwards at T" in text
    nest = elementwise((dimension("T"), 5), "float32")
    assert "guard" in loop_nest_text(tree_of(nest, scheduled(nest)))


#: Faults that a schedule may have, by what the error says.
FAULTS: dict[str, Callable[[Schedule], Schedule]] = {
    "are left over": lambda s: replace(s, m_runs=(Run(0, 1, 4),)),
    "where 0 are computed": lambda s: replace(s, m_runs=(Run(1, 1, 6),)),
    "where 7 compute all iterations": lambda s: replace(s, m_runs=(Run(0, 6, 1),)),
    "where 3 compute all iterations": lambda s: replace(s, n_runs=(Run(0, 1, 1),)),
    "not known to have so many": lambda s: replace(s, m_runs=(Run(0, 2, 4), Run(8, 1, 1))),
}


@pytest.mark.parametrize("message", FAULTS)
def test_rows_that_tiles_do_not_cover_are_refused(message: str) -> None:
    """A rest of rows is done in whole tiles without a guard, is left out, or begins elsewhere."""
    nest = product((7, 12, 5), "float32")
    (sched,) = scheduled(nest)
    with pytest.raises(ScheduleError, match=message):
        tree_of(nest, [FAULTS[message](sched)])


def test_rows_are_not_computed_again_where_results_overwrite_operands() -> None:
    nest = in_place((dimension("T"), 16), "float32")
    (sched,) = scheduled(nest)
    rows = dimension("T")
    overlapping = replace(sched, m_dim=0, m_runs=(Run(0, (rows + 3) // 4, 4, last=rows - 4),), outer=())
    with pytest.raises(ScheduleError, match="read again what it has overwritten"):
        tree_of(nest, [overlapping])
    nest = convolution((6, 8, 3, 3), "float32")
    with pytest.raises(ScheduleError, match="have to be stored once"):
        (sched,) = scheduled(nest)
        again = replace(sched, m_runs=(Run(0, 2, 4, last=2),))
        tree_of(nest, [again], is_in_place=True)
