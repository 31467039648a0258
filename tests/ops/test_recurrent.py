"""LSTM, GRU and RNN of known shapes against onnxruntime: sizes that fill no vector, all that rolled kernels read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import landbridge as lb
from landbridge.ir.module import IRModule
from landbridge.targets import Target
from tests.ops.recurrent_models import DIRECTIONS, GATES, feeds_of, network

#: Of values below 1: sums of up to 2 x 200 products come before each, and a step halves what came before it.
TOLERANCE = 4e-6


def check(model: onnx.ModelProto, session: lb.Session) -> None:
    feeds = feeds_of(model)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    for found, wanted in zip(session(*feeds.values()), expected, strict=True):
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=0, atol=TOLERANCE)


@pytest.mark.sample(5)
@pytest.mark.parametrize("hidden", [1, 3, 16, 20, 64, 100, 200])
@pytest.mark.parametrize("batch", [1, 2, 9])
@pytest.mark.parametrize("kind", GATES)
def test_sizes(kind: str, batch: int, hidden: int) -> None:
    model = network(kind, 6, batch, 7, hidden, DIRECTIONS[(batch + hidden) % 3], states=batch == 2)
    check(model, lb.Session(lb.compile(model)))


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("kind", "facts"),
    [
        ("LSTM", {"peepholes": True, "states": True}),
        ("LSTM", {"peepholes": True, "lengths": True}),
        ("LSTM", {"input_forget": 1}),
        ("LSTM", {"activations": ["HardSigmoid", "Relu", "Tanh"] * 2}),
        ("GRU", {"linear_before_reset": 1, "states": True, "lengths": True}),
        ("GRU", {"clip": 0.2}),
        ("RNN", {"activations": ["Relu", "Tanh"], "lengths": True}),
        ("RNN", {"clip": 0.2, "states": True}),
    ],
    ids=str,
)
def test_all_that_a_kernel_reads(kind: str, facts: dict[str, Any]) -> None:
    model = network(kind, 5, 3, 4, 24, "bidirectional", **facts)
    check(model, lb.Session(lb.compile(model)))


@pytest.mark.parametrize("kind", GATES)
def test_weights_that_may_be_replaced(kind: str) -> None:
    model = network(kind, 5, 2, 6, 16, "bidirectional")
    session = lb.Session(lb.compile(model, mutable=["w", "r", "b"]))
    check(model, session)
    session.set_params({"r": np.zeros((2, GATES[kind] * 16, 16), np.float32)})
    (r,) = (tensor for tensor in model.graph.initializer if tensor.name == "r")
    r.raw_data = bytes(len(r.raw_data))
    check(model, session)


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", GATES)
def test_what_is_printed_between_passes_parses(kind: str, tmp_path: Path) -> None:
    target = Target("llvm -mcpu=x86-64-v3")
    lb.compile(network(kind, "T", "N", 4, 16, "bidirectional", lengths=True), target, dump=tmp_path)
    # Half of the passes change nothing here: what they leave is the text of the pass before, which parses if that does.
    files = {file.read_text(): file.name for file in sorted(tmp_path.glob("[0-9]*.mlir"))}
    assert any('"lb.steps"' in text for text in files)
    for text, name in files.items():
        assert IRModule.parse(text, (target,)).print().strip() == text.strip(), name


@pytest.mark.parametrize("kind", GATES)
def test_the_sanitizer_sees_nothing_wrong(kind: str) -> None:
    model = network(kind, "T", "N", 4, 20, "bidirectional", states=True, lengths=True)
    session = lb.Session(lb.compile(model, sanitize=True))
    for steps, batch in ((1, 1), (9, 3), (4, 17)):
        feeds = feeds_of(model, steps, batch)
        expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
        for found, wanted in zip(session(*feeds.values()), expected, strict=True):
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("kind", GATES)
def test_no_steps_leave_what_rows_of_no_length_have(kind: str) -> None:
    """onnxruntime ends its process for some networks of no steps; it has rows of length 0."""
    with_lengths = network(kind, 1, 2, 5, 8, "bidirectional", states=True, lengths=True)
    given = feeds_of(with_lengths, 1, 2)
    given["lens"][:] = 0
    _, *ends = onnxruntime.InferenceSession(with_lengths.SerializeToString()).run(None, given)
    model = network(kind, "T", 2, 5, 8, "bidirectional", states=True)
    feeds = {each.name: given[each.name] for each in model.graph.input} | {"x": given["x"][:0]}
    executable = lb.compile(model, shapes={name: array.shape for name, array in feeds.items()})
    y, *found = map(np.asarray, lb.Session(executable)(feeds).values())
    assert y.shape == (0, 2, 2, 8)
    for each, wanted in zip(found, ends, strict=True):
        np.testing.assert_array_equal(each, wanted)
