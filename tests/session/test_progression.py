"""Sizes that advance evenly from run to run, as those of decode steps do, are computed ahead."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
import pytest

import landbridge as lb
from landbridge.vm.resizing import Resizing

CAPACITY = 90
LAYER = """
<ir_version: 8, opset_import: ["" : 17]>
layer (float[1, S, 8] x, float[1, P, 8] past_key, float[1, P, 8] past_value)
    => (float[1, S, 8] y, float[1, T, 8] present_key, float[1, T, 8] present_value)
{
    present_key = Concat <axis = 1> (past_key, x)
    present_value = Concat <axis = 1> (past_value, x)
    keys = Transpose <perm = [0, 2, 1]> (present_key)
    scores = MatMul (x, keys)
    weights = Softmax <axis = -1> (scores)
    y = MatMul (weights, present_value)
}
"""
#: A mask that grows with the steps, and a division of the extent that does not advance evenly.
MASKED = """
<ir_version: 8, opset_import: ["" : 17]>
masked (float[1, T, 8] x) => (float[1, H, 8] y, float[1, 8] sum)
<int64[1] zero = {0}, int64[1] most = {9223372036854775807}, int64[1] axis = {1}, int64[1] two = {2}>
{
    y = Slice (x, zero, most, axis, two)
    sum = ReduceSum <keepdims = 0> (x, axis)
}
"""


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """The choices of sizes that were computed one by one."""
    found: list[object] = []
    fit = Resizing.fit

    def noted(self: Resizing, values: dict[str, int]) -> object:
        found.append(dict(values))
        return fit(self, values)

    monkeypatch.setattr(Resizing, "fit", noted)
    yield found


def attended(rows: np.ndarray) -> np.ndarray:
    """The result of a step over all ``rows``, the last of which is new."""
    scores = rows[-1:] @ rows.T
    weights = np.exp(scores - scores.max())
    return weights / weights.sum() @ rows


def test_steps_of_new_lengths_compute_no_sizes_of_their_own(fits: list[object]) -> None:
    session = lb.Session(lb.compile(onnx.parser.parse_model(LAYER), alias="auto"))
    state = session.bind_state(capacity=CAPACITY)
    rows = np.random.default_rng(0).standard_normal((CAPACITY, 8)).astype(np.float32)
    session(rows[None, :5])
    for at in range(5, CAPACITY):
        if at == 9:
            fits.clear()
        (y,) = session(rows[None, at : at + 1])
        np.testing.assert_allclose(np.asarray(y)[0], attended(rows[: at + 1]), rtol=2e-5, atol=2e-6)
    assert len(fits) <= 6  # of 81 steps: one for each 33, and two where memory grows, which happens twice
    with pytest.raises(lb.StateCapacityError, match=f"the run needs {CAPACITY + 1} steps"):
        session(rows[None, :1])
    state.rewind(7)
    (y,) = session(rows[None, 7:8])
    np.testing.assert_allclose(np.asarray(y)[0], attended(rows[:8]), rtol=2e-5, atol=2e-6)
    (y,) = session(rows[None, 8:10])  # two rows: no step of the progression
    assert state.length == 10 and np.asarray(y).shape == (1, 2, 8)


def test_bound_runs_keep_their_outputs_between_lengths(fits: list[object]) -> None:
    session = lb.Session(lb.compile(onnx.parser.parse_model(LAYER), alias="auto"))
    session.bind_state(capacity=CAPACITY)
    rows = np.random.default_rng(1).standard_normal((CAPACITY, 8)).astype(np.float32)
    row, out = rows[None, :1].copy(), np.zeros((1, 1, 8), np.float32)
    session.set_input_zero_copy("x", row)
    session.set_output_zero_copy("y", out)
    for at in range(60):
        row[0] = rows[at]
        session.run()
        np.testing.assert_allclose(out[0], attended(rows[: at + 1]), rtol=2e-5, atol=2e-6)
    assert len(fits) < 12


@pytest.mark.parametrize("step", [1, 3, -1])
def test_shapes_that_advance(fits: list[object], step: int) -> None:
    session = lb.Session(lb.compile(onnx.parser.parse_model(MASKED)))
    lengths = [90 + step * at for at in range(80)]
    for length in lengths:
        x = np.random.default_rng(length).standard_normal((1, length, 8)).astype(np.float32)
        y, total = session(x)
        np.testing.assert_array_equal(np.asarray(y), x[:, ::2])
        np.testing.assert_allclose(np.asarray(total), x.sum(1), rtol=1e-4, atol=1e-4)
    if step > 0:
        assert len(fits) < 40


def test_lengths_that_are_illegal_are_refused_as_before() -> None:
    model = onnx.parser.parse_model(MASKED)
    session = lb.Session(lb.compile(model, dims={"T": lb.Dim(2, 20)}))
    for length in range(2, 21):
        session(np.ones((1, length, 8), np.float32))
    with pytest.raises(lb.ShapeError, match=r"axis 1 of input 'x' is 21; legal"):
        session(np.ones((1, 21, 8), np.float32))
