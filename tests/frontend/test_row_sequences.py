"""Sequences that a loop makes, of as many tensors as a run says, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import landbridge as lb
from landbridge.errors import UnsupportedOperatorError

LOOP = """all, h = Loop <body = step (int64 i, bool go, seq(float[2,3]) s, float[2,3] g)
    => (bool on, seq(float[2,3]) s2, float[2,3] g2) {
    f = Cast<to = 1>(i) k = Sin(g) g2 = Add(k, f) s2 = SequenceInsert(s, g2) on = Identity(go) }>(n, , s0, x)"""
EMPTY = "s0 = SequenceEmpty()"


def agree(text: str, *given: dict[str, Any], outputs: str = "float[A,B] y", inputs: str = "") -> None:
    """Each of ``given`` has the results that onnxruntime gives."""
    whole = f"g (int64 n, float[2,3] x{inputs}) => ({outputs}) {{ {text} }}"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {whole}')
    session, reference = lb.Session(lb.compile(model)), onnxruntime.InferenceSession(model.SerializeToString())
    for each in given:
        for found, wanted in zip(session(each).values(), reference.run(None, each), strict=True):
            assert found.shape == wanted.shape
            # At most 40 sines and sums, one after the other: a few ulp.
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=2e-5, atol=2e-5)


def feed(count: int, **more: Any) -> dict[str, Any]:
    return {"n": np.array(count), "x": np.arange(6, dtype=np.float32).reshape(2, 3), **more}


@pytest.mark.sample(3)
@pytest.mark.parametrize("first", [EMPTY, "s0 = SequenceConstruct(x)"])
@pytest.mark.parametrize(
    ("axis", "new", "outputs"),
    [(0, 0, "float[A,B] y"), (-1, 0, "float[A,B] y"), (0, 1, "float[A,B,C] y"), (2, 1, "float[A,B,C] y")],
)
def test_they_are_joined(first, axis, new, outputs):
    text = f"{first} {LOOP} y = ConcatFromSequence<axis = {axis}, new_axis = {new}>(all)"
    agree(text, feed(1), feed(2), feed(40), outputs=outputs)


def test_how_many_there_are():
    agree(f"{EMPTY} {LOOP} y = SequenceLength(all)", feed(0), feed(1), feed(5), outputs="int64 y")


def test_one_of_them():
    text = f"{EMPTY} {LOOP} y = SequenceAt(all, at)"
    agree(text, *(feed(5, at=np.array(at)) for at in (0, 4, -1, -5)), feed(1, at=np.array(0)), inputs=", int64 at")


def test_one_more_behind_them():
    text = f"{EMPTY} {LOOP} more = SequenceInsert(all, x) y = ConcatFromSequence<axis = 0>(more)"
    agree(text, feed(0), feed(1), feed(3))


def test_a_second_loop_reads_them():
    """One that goes over all of them, by number."""
    text = f"""{EMPTY} {LOOP} count = SequenceLength(all)
    y = Loop <body = again (int64 i, bool go, float[2,3] a) => (bool on, float[2,3] b) {{
        on = Identity(go) e = SequenceAt(all, i) b = Sub(e, a) }}>(count, , x)"""
    agree(text, feed(1), feed(6))


def test_an_iteration_hands_them_on_before_it_adds_one():
    loop = LOOP.replace("SequenceInsert(s, g2)", "SequenceInsert(same, g2)").replace(
        "f = Cast", "same = Identity(s) f = Cast"
    )
    agree(f"{EMPTY} {loop} y = ConcatFromSequence<axis = 0>(all)", feed(1), feed(5))


def test_each_iteration_adds_what_is_computed_before_the_loop():
    loop = LOOP.replace("SequenceInsert(s, g2)", "SequenceInsert(s, r)")
    agree(f"r = Neg(x) {EMPTY} {loop} y = ConcatFromSequence<axis = 0>(all)", feed(1), feed(5))


def test_each_iteration_adds_a_constant():
    loop = LOOP.replace("SequenceInsert(s, g2)", "SequenceInsert(s, k0)")
    text = f"k0 = Constant<value = float[2,3] {{1,2,3,4,5,6}}>() {EMPTY} {loop} y = ConcatFromSequence<axis = 0>(all)"
    agree(text, feed(1), feed(5))


def test_a_second_loop_adds_to_them():
    text = f"""{EMPTY} {LOOP}
    more = Loop <body = again (int64 i, bool go, seq(float[2,3]) s) => (bool on, seq(float[2,3]) s2) {{
        on = Identity(go) f = Cast<to = 1>(i) e = Mul(x, f) s2 = SequenceInsert(s, e) }}>(n, , all)
    y = ConcatFromSequence<axis = 0>(more)"""
    agree(text, feed(1), feed(6))


def test_a_trip_count_that_the_model_computes():
    text = f"real = Cast<to = 1>(n) m = Sqrt(real) c = Cast<to = 7>(m) {EMPTY} {LOOP.replace('(n,', '(c,')}"
    agree(f"{text} y = ConcatFromSequence<axis = 0>(all)", feed(1), feed(9), feed(20))


def test_as_many_as_an_input_is_long():
    loop = LOOP.replace("(n,", "(c,")
    text = f"sh = Shape(q) c = Squeeze(sh) {EMPTY} {loop} y = ConcatFromSequence<axis = 1>(all)"
    agree(text, *(feed(0, q=np.zeros(k, np.float32)) for k in (1, 2, 50)), inputs=", float[K] q")


def test_a_value_grows_beside_them():
    text = f"""{EMPTY} all, h = Loop <body = step (int64 i, bool go, seq(float[2,3]) s, float[P,3] g)
    => (bool on, seq(float[2,3]) s2, float[Q,3] g2) {{
        m = ReduceMean<axes = [0], keepdims = 1>(g) r = Mul(m, x) g2 = Concat<axis = 0>(g, m)
        s2 = SequenceInsert(s, r) on = Identity(go) }}>(n, , s0, x) y = ConcatFromSequence<axis = 0>(all)"""
    agree(text, feed(1), feed(2), feed(9), outputs="float[A,3] y, float[H,3] h")


def test_a_condition_ends_it():
    body = LOOP.replace("on = Identity(go)", "m = ReduceMax<keepdims = 0>(g2) most = Add(m, m) on = Less(most, far)")
    text = f"far = Constant<value = float {{9.0}}>() {EMPTY} {body} y = ConcatFromSequence<axis = 0>(all)"
    agree(text, feed(1), feed(3), feed(40))


def test_one_that_is_only_read_in_the_loop():
    text = """s0 = SequenceConstruct(x, x) three = Constant<value = int64 {1}>()
    all, y = Loop <body = step (int64 i, bool go, seq(float[2,3]) s, float[2,3] g)
    => (bool on, seq(float[2,3]) s2, float[2,3] g2) {
        on = Identity(go) e = SequenceAt(s, three) g2 = Add(g, e) s2 = Identity(s) }>(n, , s0, x)"""
    agree(text, feed(0), feed(1), feed(5))


def test_what_takes_none_of_them_says_what_does():
    loop = LOOP.replace("(n,", "(c,")
    text = f"sh = Shape(q) c = Squeeze(sh) {EMPTY} {loop} less = SequenceErase(all) y = SequenceLength(less)"
    with pytest.raises(UnsupportedOperatorError, match="SequenceAt, SequenceLength, SequenceInsert behind all"):
        agree(text, inputs=", float[K] q", outputs="int64 y")
