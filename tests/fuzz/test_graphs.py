"""Graphs of several nodes compile, stay inside their buffers and compute what onnxruntime does."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from draw_graph import KINDS, draw_graph
from fuzz_graphs import NoReference, Reference, check, difference
from tests.witnesses.guard_pages import in_child

#: Seeds of which each commit checks some: a few in a sample, 300 in a share of the whole.
SEEDS = 1800
#: Seeds that were found to be wrong once.
FOUND = (938,)


@pytest.mark.sample(16)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_drawn(seed: int) -> None:
    in_child(check, seed)


@pytest.mark.parametrize("seed", FOUND)
def test_found(seed: int) -> None:
    in_child(check, seed)


def test_graphs_are_of_many_kinds() -> None:
    drawn = [draw_graph(seed) for seed in range(400)]
    operators = {kind for each in drawn for kind in each.kinds}
    assert len(KINDS) >= 110
    assert len(operators) >= 100
    assert {True, False} == {each.open for each in drawn}
    assert max(len(each.kinds) for each in drawn) >= 15
    for each in drawn[:50]:
        onnx.checker.check_model(each.model, full_check=True)


def test_a_graph_depends_on_its_seed_alone() -> None:
    assert draw_graph(7).model.SerializeToString(deterministic=True) == draw_graph(7).model.SerializeToString(
        deterministic=True
    )
    assert draw_graph(7).model != draw_graph(8).model


def test_what_differs_is_noticed() -> None:
    """An element that is no rounding of what is right, and a number to the bit that is another one."""
    noticed = 0
    for seed in range(40):
        drawn = draw_graph(seed)
        extent = 5 if drawn.open else 0
        try:
            outputs = Reference(drawn)(drawn.feeds(extent, 0))
        except NoReference:
            continue
        for expected in outputs:
            value = expected[0]
            assert not difference(expected, value.copy())
            if not value.size or not np.isfinite(value.astype(np.float64)).all():
                continue
            wrong = value.copy()
            further = 0.01 * (1 + np.abs(value.astype(np.float64)).max())
            wrong.flat[-1] = ~wrong.flat[-1] if value.dtype.kind in "iub" else wrong.flat[-1] + further
            noticed += bool(difference(expected, wrong))
    assert noticed > 40
