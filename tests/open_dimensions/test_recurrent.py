"""LSTM, GRU and RNN over batches and steps of any number, with and without first states and lengths of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import landbridge as lb
from tests.ops.recurrent_models import DIRECTIONS, GATES, feeds_of, network

STEPS, INPUTS, HIDDEN = 3, 5, 8
#: Of values below 1: sums of 13 f32 products come before each, and a step halves what came before it. A state that is
#: given may be larger, and a GRU blends it with what it computes: then of the largest value.
TOLERANCE = 2e-6


def open_network(
    kind: str,
    states: bool = False,
    lengths: bool = False,
    steps: int | str = "T",
    direction: str = "bidirectional",
    **kw: Any,
) -> onnx.ModelProto:
    return network(kind, steps, "N", INPUTS, HIDDEN, direction, states=states, lengths=lengths, **kw)


def check(model: onnx.ModelProto, session: lb.Session, steps: int, batch: int) -> None:
    feeds = feeds_of(model, steps, batch)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    for found, wanted in zip(session(*feeds.values()), expected, strict=True):
        largest = max(1.0, float(np.abs(wanted).max()))
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=0, atol=TOLERANCE * largest)


@pytest.mark.sample(2)
@pytest.mark.parametrize("states", [False, True])
@pytest.mark.parametrize("kind", GATES)
def test_a_batch_of_any_size(kind: str, states: bool) -> None:
    model = open_network(kind, states, steps=STEPS)
    session = lb.Session(lb.compile(model, dims={"N": "1..17"}))
    for batch in (1, 4, 17, 2):
        check(model, session, STEPS, batch)


#: Each open in steps and batch, and what the operator can do beside.
OPEN: dict[str, onnx.ModelProto] = {
    f"{kind}-{direction}-{states}-{lengths}": open_network(kind, states, lengths, direction=direction)
    for kind in GATES
    for direction in DIRECTIONS
    for states, lengths in ((False, False), (True, True))
} | {
    "GRU-linear": open_network("GRU", True, True, linear_before_reset=1),
    "GRU-clip": open_network("GRU", False, True, clip=0.3),  # onnxruntime does not clip the cell of an LSTM
    "LSTM-forget": open_network("LSTM", True, False, input_forget=1),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("name", OPEN)
def test_any_number_of_steps(name: str, target: str) -> None:
    session = lb.Session(lb.compile(OPEN[name], target, dims={"T": "1..300", "N": "1..20"}))

    @settings(max_examples=6, deadline=None)
    @given(st.integers(1, 300), st.integers(1, 20))
    def drawn(steps: int, batch: int) -> None:
        check(OPEN[name], session, steps, batch)

    for steps, batch in ((1, 1), (300, 1), (1, 20)):
        check(OPEN[name], session, steps, batch)
    drawn()


@pytest.mark.parametrize("kind", GATES)
def test_open_steps_give_what_known_ones_give(kind: str) -> None:
    model = open_network(kind, True, True)
    session = lb.Session(lb.compile(model))
    for steps, batch in ((1, 2), (7, 3), (40, 1)):
        feeds = feeds_of(model, steps, batch)
        known = lb.Session(lb.compile(model, shapes={n: a.shape for n, a in feeds.items()}))
        for a, b in zip(session(*feeds.values()), known(*feeds.values()), strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("kind", GATES)
def test_rows_end_at_their_lengths(kind: str) -> None:
    """By the text of ONNX: outputs beyond a length are 0, the last state is that of the last step of a row, and the
    other direction begins there."""
    model = open_network(kind, lengths=True)
    session = lb.Session(lb.compile(model))
    feeds = feeds_of(model, 6, 3)
    feeds["lens"] = np.array([6, 1, 4], np.int32)
    y, last = (np.asarray(v) for v in session(*feeds.values())[:2])
    for row, length in enumerate(feeds["lens"]):
        alone = {"x": feeds["x"][:length, row : row + 1].copy(), "lens": feeds["lens"][row : row + 1]}
        whole, end = (np.asarray(v) for v in session(*alone.values())[:2])
        np.testing.assert_allclose(y[:length, :, row], whole[:, :, 0], rtol=0, atol=TOLERANCE)
        np.testing.assert_allclose(last[:, row], end[:, 0], rtol=0, atol=TOLERANCE)
        assert not y[length:, :, row].any()


def test_a_long_network_is_a_short_program() -> None:
    def kernels(steps: int) -> int:
        exe = lb.compile(open_network("LSTM", steps=steps), shapes={"x": (steps, 1, INPUTS)})
        return len(exe.functions["main"].instructions)

    assert kernels(1200) == kernels(2)
