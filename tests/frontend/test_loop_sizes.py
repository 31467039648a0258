"""Loops that what they carry ends by its size, and that carry what shrinks: results at several sizes, against
onnxruntime."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto
from onnxruntime.capi.onnxruntime_pybind11_state import RuntimeException

import landbridge as lb

CONSTANTS = """
    true = Constant<value = bool {1}>()
    none = Constant<value = int64 {0}>()
    one = Constant<value = int64 {1}>()
    limit = Constant<value = int64 {8}>()
    far = Constant<value = float {8.5}>()
    begin = Constant<value = int64[1] {0}>()
    second = Constant<value = int64[1] {1}>()
    third = Constant<value = int64[1] {2}>()
    last = Constant<value = int64[1] {-1}>()
    end = Constant<value = int64[1] {9223372036854775807}>()
"""
SIZES = {
    "size": "n = Size(b)",
    "shape": "shape = Shape(b) n = Gather(shape, none)",
    "before": "n = Size(a)",
}
CONDITIONS = {
    "less": "on = Less(n, limit)",
    "less or equal": "on = LessOrEqual(n, limit)",
    "greater": "on = Greater(limit, n)",
    "not equal": "same = Equal(n, limit) on = Not(same)",
    "both": "few = Less(n, limit) low = Less(i, limit) on = And(few, low)",
    "as a float": "number = Cast<to = 1>(n) on = Less(number, far)",
}
#: What changes a value of one axis, from ``{0}`` to ``{1}``.
CHANGES = {
    "the first goes": "{1} = Slice({0}, second, end)",
    "the last goes": "{1} = Slice({0}, begin, last)",
    "two go": "{1} = Slice({0}, third, end)",
    "the first half stays": "of_{1} = Shape({0}) half_{1} = Div(of_{1}, third) {1} = Slice({0}, begin, half_{1})",
    "the sum is put behind": "sum_{1} = ReduceSum<keepdims = 1>({0}) {1} = Concat<axis = 0>({0}, sum_{1})",
    "w is put before": "{1} = Concat<axis = 0>(w, {0})",
    "each is changed": "{1} = Sin({0})",
}


def loop(body: str, given: str = "float[P] x", count: str = "n0", row: str = "") -> ModelProto:
    """A Loop over ``body``, which makes ``b`` and ``on`` of ``a``; ``given`` is carried first."""
    rows = (", rows", ", float[T] rows", f", float {row}") if row else ("", "", "")
    text = f"""<ir_version: 8, opset_import: ["" : 17]> g (int64 n0, {given}, float[1] w) => (float[M] y{rows[1]}) {{
        {CONSTANTS}
        y{rows[0]} = Loop <body = step (int64 i, bool go, float[Q] a) => (bool on, float[R] b{rows[2]}) {{ {body} }}>
            ({count}, true, x)
    }}"""
    return onnx.parser.parse_model(text)


def feeds(lengths: tuple[int, ...], counts: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    for length, count in product(lengths, counts):
        x = np.arange(length, dtype=np.float32) / 8 + 1
        yield {"n0": np.array(count), "x": x, "w": np.full(1, 0.5, np.float32)}


def agree(model: ModelProto, *given: dict[str, Any], may_refuse: bool = False) -> None:
    """Each of ``given`` has the results that onnxruntime gives; where that refuses it, nothing is asked."""
    session = lb.Session(lb.compile(model))
    reference = onnxruntime.InferenceSession(model.SerializeToString())
    for each in given:
        known = {spec.name for spec in reference.get_inputs()}
        try:
            expected = reference.run(None, {name: x for name, x in each.items() if name in known})
        except RuntimeException:
            assert may_refuse
            continue
        for found, wanted in zip(session(each).values(), expected, strict=True):
            assert found.shape == wanted.shape
            # Sums of at most 20 terms of one sign or two, whose order differs, and their sines: a few ulp.
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.sample(3)
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("size", SIZES)
def test_the_size_of_what_grows_ends_it(size, condition):
    grows = f"{CHANGES['the sum is put behind'].format('a', 'b')} {SIZES[size]} {CONDITIONS[condition]}"
    agree(loop(grows), *feeds((0, 1, 3, 7, 8, 9), (0, 1, 3, 20)))


@pytest.mark.sample(4)
@pytest.mark.parametrize("count", ["", "one"])
@pytest.mark.parametrize(("given", "lengths"), [("float[P] x", (0, 1, 5)), ("float[0] x", (0,)), ("float[3] x", (3,))])
def test_what_ends_it_begins_with_any_length(given, lengths, count):
    grows = f"{CHANGES['the sum is put behind'].format('a', 'b')} {SIZES['size']} {CONDITIONS['not equal']}"
    agree(loop(grows, given, count), *feeds(lengths, (0,)))


def test_rows_beside_what_ends_it():
    grows = f"{CHANGES['w is put before'].format('a', 'b')} {SIZES['size']} {CONDITIONS['less']}"
    agree(loop(grows + " row = ReduceSum<keepdims = 0>(b)", row="row"), *feeds((0, 1, 5, 9), (0, 1, 20)))


@pytest.mark.sample(2)
@pytest.mark.parametrize("change", ["the first goes", "the last goes", "two go", "the first half stays"])
def test_what_shrinks_to_nothing(change):
    agree(loop(f"{CHANGES[change].format('a', 'b')} on = Identity(go)"), *feeds((0, 1, 2, 7), (0, 1, 2, 9)))


@pytest.mark.parametrize("least", ["none", "one"])
def test_it_shrinks_until_little_is_left(least):
    shrinks = f"{CHANGES['the first goes'].format('a', 'b')} n = Size(b) on = Greater(n, {least})"
    agree(loop(shrinks), *feeds((0, 1, 2, 7), (0, 1, 20)))


def test_a_window_that_moves():
    """The last row goes, and one that it and a number make comes; of one row all is new."""
    moves = """size = Size(a) at = Sub(size, one) place = Unsqueeze(at, begin) row = Gather(a, place)
    rest = Slice(a, begin, last) new = Add(row, w) b = Concat<axis = 0>(rest, new) on = Identity(go)"""
    agree(loop(moves), *feeds((1, 2, 6), (0, 1, 4)))


def test_a_window_that_fills_first():
    """A branch inside asks how much there is."""
    fills = """c = Concat<axis = 0>(a, w) n = Size(c) full = Greater(n, limit)
    b = If <then_branch = then () => (float[T] t) { t = Slice(c, second, end) },
            else_branch = orelse () => (float[E] e) { e = Identity(c) }>(full) on = Identity(go)"""
    agree(loop(fills), *feeds((0, 1, 7, 8, 9), (0, 1, 4)))


def test_one_that_shrinks_as_another_grows():
    text = f"""<ir_version: 8, opset_import: ["" : 17]> g (int64 n0, float[P] x) => (float[M] y, float[N] z) {{
        {CONSTANTS}
        done = Constant<value = float[0] {{}}>()
        y, z = Loop <body = step (int64 i, bool go, float[A] a, float[B] b) => (bool on, float[C] a2, float[D] b2) {{
            moved = Slice(a, begin, second) a2 = Slice(a, second, end) b2 = Concat<axis = 0>(b, moved)
            on = Identity(go) }}>(n0, true, x, done)
    }}"""
    given = [{name: each[name] for name in ("n0", "x")} for each in feeds((1, 2, 5), (0, 1, 2, 8))]
    agree(onnx.parser.parse_model(text), *given)


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(12))
def test_drawn_bodies(seed):
    """Bodies of a few changes of the size, ended by it or not."""
    random = Random(seed)
    changes = random.choices([*CHANGES], k=random.randint(1, 3))
    names = ["a", *(f"b{number}" for number in range(len(changes) - 1)), "b"]
    made = " ".join(
        CHANGES[each].format(old, new) for each, old, new in zip(changes, names[:-1], names[1:], strict=True)
    )
    ends = f"{SIZES[random.choice([*SIZES])]} {CONDITIONS[random.choice([*CONDITIONS])]}"
    body = f"{made} {random.choice([ends, 'on = Identity(go)'])}"
    agree(loop(body), *feeds((1, 2, 5, 9), (0, 1, 6)), may_refuse=True)
