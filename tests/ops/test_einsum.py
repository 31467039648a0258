"""Einsum beside numpy's in float64, and the order in which several operands are multiplied."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest

import landbridge as lb
from landbridge.errors import ShapeError
from landbridge.ops.contraction_order import MOST_SUBSETS, Labels, Pair, contracted, contraction_order
from tests.ops.elementwise_models import KINDS
from tests.ops.one_node import Array, one_node, run_node

Shapes = Sequence[tuple[int, ...]]
CASES: list[tuple[str, Shapes]] = [
    ("bi,ij,bj->b", [(6, 20), (20, 24), (6, 24)]),
    ("ij,jk,kl->il", [(12, 20), (20, 16), (16, 9)]),
    ("ij,jk,kl,lm->im", [(12, 20), (20, 16), (16, 9), (9, 30)]),
    ("bhqd,bhkd,bhkv->bhqv", [(2, 3, 17, 8), (2, 3, 19, 8), (2, 3, 19, 5)]),
    ("a,b,c->abc", [(5,), (6,), (7,)]),
    ("bi,bi,bi->b", [(4, 33)] * 3),
    ("bi,bj,ijk->kb", [(4, 8), (4, 9), (8, 9, 10)]),
    ("ij,jk->k", [(20, 30), (30, 17)]),  # i is in one operand alone
    ("ij,kl->", [(5, 6), (7, 8)]),
    ("ii,ij,j->i", [(9, 9), (9, 5), (5,)]),  # a diagonal
    ("ijj,j->i", [(4, 6, 6), (6,)]),
    ("...ij,...jk,k->...i", [(2, 3, 4, 5), (2, 3, 5, 6), (6,)]),
    ("i...,i...,...->...", [(3, 4, 5), (3, 4, 5), (4, 5)]),
    ("ij,ij,j->i", [(1, 7), (6, 7), (7,)]),  # an extent of 1 is read for all
    ("ij,i->j", [(1, 7), (6,)]),
    ("ab,bc,cd", [(3, 4), (4, 5), (5, 6)]),  # no result is given
    ("ij,jk,kl->il", [(3, 0), (0, 4), (4, 5)]),  # sums of nothing
    ("ab,bc,cd,de,ef,fg,gh,hi,ij->aj", [(2, 3), (3, 4), (4, 2), (2, 5), (5, 3), (3, 2), (2, 4), (4, 3), (3, 2)]),
]


def given(shapes: Shapes, dtype: str = "float32") -> list[Array]:
    rng = np.random.default_rng(3)
    return [
        rng.integers(-3, 4, s).astype(dtype) if dtype == "int32" else rng.standard_normal(s).astype(dtype)
        for s in shapes
    ]


def truth(equation: str, arrays: Sequence[Array]) -> Array:
    return np.asarray(np.einsum(equation, *(a.astype(np.float64) for a in arrays)))


@pytest.mark.sample(7)
@pytest.mark.parametrize(("equation", "shapes"), CASES)
def test_values(equation: str, shapes: Shapes) -> None:
    arrays = given(shapes)
    (y,) = run_node("Einsum", arrays, equation=equation)
    magnitude = truth(equation, [np.abs(a) for a in arrays])
    assert (np.abs(y - truth(equation, arrays)) <= 8 * np.finfo(np.float32).eps * magnitude).all()


@pytest.mark.sample(4)
@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
@pytest.mark.parametrize("equation", ["bi,ij,bj->b", "ij,jk,kl->il"])
def test_every_target_and_dtype(equation: str, dtype: str, target: str) -> None:
    arrays = given(dict(CASES)[equation] if equation[0] == "b" else [(12, 20), (20, 16), (16, 9)], dtype)
    (y,) = run_node("Einsum", arrays, target=target, equation=equation)
    assert y.dtype == arrays[0].dtype
    magnitude = truth(equation, [np.abs(a) for a in arrays])
    # 16-bit floats are multiplied and added in float32, and rounded once
    eps = {"float16": 2.0**-11, "float64": 2.0**-50, "int32": 0.0}.get(dtype, 2.0**-20)
    assert (np.abs(y.astype(np.float64) - truth(equation, arrays)) <= eps * magnitude).all()


def test_open_extents() -> None:
    equation = "bi,ij,bj->b"
    model = one_node("Einsum", given([(6, 20), (20, 24), (6, 24)]), (1,), equation=equation)
    for i in (0, 1):
        model.graph.input[i].type.tensor_type.shape.dim[0].dim_param = "batch"
    model.graph.output[0].type.tensor_type.ClearField("shape")
    session = lb.Session(lb.compile(model))
    weights = given([(6, 20), (20, 24)])[1]
    for batch in (1, 6, 40):
        x, y = given([(batch, 20), (batch, 24)])
        (found,) = session(x, y)
        np.testing.assert_allclose(found, truth(equation, [x, weights, y]), rtol=1e-4, atol=1e-4)


def test_labels_of_two_extents_are_refused() -> None:
    with pytest.raises(ShapeError, match="label 'j'"):
        run_node("Einsum", given([(2, 3), (4, 5), (5, 6)]), equation="ij,jk,kl->il")


def cost(terms: Sequence[Labels], retained: Labels, extents: dict[str, int], order: Sequence[Pair]) -> int:
    left, total = list(terms), 0
    for pair in order:
        made = contracted(left, retained, pair)
        union = left[pair[0]] | left[pair[1]]
        total += int(np.prod([extents[v] for v in union])) + int(np.prod([extents[v] for v in made]))
        left = [t for i, t in enumerate(left) if i not in pair] + [made]
    assert len(left) == 1
    assert left[0] == retained
    return total


def orders(count: int) -> list[list[Pair]]:
    if count == 1:
        return [[]]
    return [[pair, *rest] for pair in combinations(range(count), 2) for rest in orders(count - 1)]


@pytest.mark.parametrize("seed", range(12))
def test_the_order_is_the_cheapest_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count, labels = int(rng.integers(3, 6)), "abcdefg"
    extents = {v: int(rng.integers(2, 30)) for v in labels}
    terms = [frozenset(rng.choice(list(labels), 3, replace=False).tolist()) for _ in range(count)]
    retained = frozenset(sorted(frozenset().union(*terms))[:2])
    order = contraction_order(terms, retained, extents)
    best = min(cost(terms, retained, extents, each) for each in orders(count))
    at_once = (count - 1) * int(np.prod([extents[v] for v in frozenset().union(*terms)]))
    assert (cost(terms, retained, extents, order) == best) if order else at_once <= best


def test_many_operands_are_multiplied_in_pairs() -> None:
    count = 3 * MOST_SUBSETS
    names = [chr(ord("A") + i) for i in range(count + 1)]
    terms = [names[i : i + 2] for i in range(count)]
    order = contraction_order(terms, [names[0], names[-1]], dict.fromkeys(names, 8))
    assert len(order) == count - 1
    sets = [frozenset(t) for t in terms]
    assert cost(sets, frozenset((names[0], names[-1])), dict.fromkeys(names, 8), order) < 600 * count


def test_elementwise_products_are_one_nest() -> None:
    assert contraction_order(["bi", "bi", "bi"], "bi", {"b": 9, "i": 9}) == []
