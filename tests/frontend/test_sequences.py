"""Sequences of tensors whose length is known: lists while a model is imported, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import landbridge as lb

Array = np.ndarray[Any, Any]
X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def run(text: str, *inputs: Array) -> list[Array]:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{text}')
    return [np.asarray(output) for output in lb.Session(lb.compile(model))(*inputs)]


def test_split_insert_erase_and_concat() -> None:
    y, n = run(
        """g (float[2,3,4] x) => (float[A,B,C] y, int64 n) {
            parts = SplitToSequence<axis = 1>(x)
            whole = Neg(x)
            one = Constant<value_int = 1>()
            wide = SequenceInsert(parts, whole, one)
            last = SequenceErase(wide)
            y = ConcatFromSequence<axis = 1>(last)
            n = SequenceLength(wide)
        }""",
        X,
    )
    np.testing.assert_array_equal(y, np.concatenate([X[:, :1], -X, X[:, 1:2]], 1))
    assert n == 4


@pytest.mark.parametrize("at", [-2, -1, 0, 1])
def test_a_place_may_be_an_input(at: int) -> None:
    (y,) = run(
        """g (float[3] a, float[3] b, int64 at) => (float[3] y) {
            s = SequenceConstruct(a, b)
            y = SequenceAt(s, at)
        }""",
        np.ones(3, np.float32),
        np.zeros(3, np.float32),
        np.array(at),
    )
    assert (y == [1, 0][at]).all()


def test_parts_of_declared_sizes_and_a_new_axis() -> None:
    (y, z) = run(
        """g (float[2,3,4] x) => (float[A,B,C] y, float[D,E,F,G] z) {
            sizes = Constant<value_ints = [1, 3]>()
            parts = SplitToSequence<axis = -1>(x, sizes)
            one = Constant<value_int = -1>()
            y = SequenceAt(parts, one)
            rows = SplitToSequence<axis = 0, keepdims = 0>(x)
            stacked = ConcatFromSequence<axis = 1, new_axis = 1>(rows)
            zero = Constant<value_ints = [0]>()
            z = Unsqueeze(stacked, zero)
        }""",
        X,
    )
    np.testing.assert_array_equal(y, X[:, :, 1:])
    np.testing.assert_array_equal(z, np.stack([X[0], X[1]], 1)[None])


@pytest.mark.sample(2)
@pytest.mark.parametrize("sizes", [[1, 3, 2], [0, 6, 0]])
@pytest.mark.parametrize("kind", ["int64", "float"])
def test_parts_of_sizes_that_come_with_the_run(kind: str, sizes: list[int]) -> None:
    """As an input says them, or as they are computed."""
    last, first = run(
        f"""g (float[N,4] x, {kind}[3] k) => (float[A,4] y, float[B,4] z) {{
            sizes = Cast<to = 7>(k)
            parts = SplitToSequence<axis = 0>(x, sizes)
            two = Constant<value_int = 2>() zero = Constant<value_int = 0>()
            y = SequenceAt(parts, two) z = SequenceAt(parts, zero)
        }}""",
        X.reshape(6, 4),
        np.array(sizes, np.float32 if kind == "float" else np.int64),
    )
    parts = np.split(X.reshape(6, 4), np.cumsum(sizes)[:-1])
    np.testing.assert_array_equal(last, parts[2], strict=True)
    np.testing.assert_array_equal(first, parts[0], strict=True)


def test_what_cannot_be() -> None:
    with pytest.raises(lb.NodeError, match="position 2 of a sequence of 2"):
        run(
            """g (float[3] a) => (float[3] y) {
                s = SequenceConstruct(a, a)
                two = Constant<value_int = 2>()
                y = SequenceAt(s, two)
            }""",
            X[0, 0, :3],
        )
    with pytest.raises(lb.ShapeError, match=r"parts of \[1, 2\] of 4 elements of axis 0"):
        run(
            """g (float[4] a) => (float[3] y) {
                sizes = Constant<value_ints = [1, 2]>()
                s = SplitToSequence(a, sizes)
                y = ConcatFromSequence<axis = 0>(s)
            }""",
            X[0, 0],
        )
    with pytest.raises(
        lb.UnsupportedOperatorError, match=r"of N elements; how many parts .* fix the extent by shapes="
    ):
        run("g (float[N] a) => (float[M] y) { s = SplitToSequence(a) y = ConcatFromSequence<axis = 0>(s) }", X[0, 0])


def test_an_empty_sequence_and_a_copy_of_one() -> None:
    n, y = run(
        """g (float[3] x) => (int64 n, float[3] y) {
            none = SequenceEmpty()
            n = SequenceLength(none)
            one = SequenceConstruct(x)
            same = Identity(one)
            zero = Constant<value_int = 0>()
            y = SequenceAt(same, zero)
        }""",
        X[0, 0, :3],
    )
    assert n == 0
    np.testing.assert_array_equal(y, X[0, 0, :3])
