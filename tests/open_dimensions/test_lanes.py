"""Vectors along an axis of which there is any number of elements: whole ones, then one that is masked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

import landbridge as lb
from landbridge.executable.instance import ExtentValues, instance
from tests.open_dimensions.models import Weights, model
from tests.witnesses.guard_pages import GuardedRun

#: Relative to the largest number of a result: sums of up to 130 f32 products in another order.
TOLERANCE = 3e-6
#: Around one vector, four, and a register block of vectors; and the ends.
LENGTHS = (*range(1, 35), *range(47, 51), 63, 64, 65, 79, 80, 95, 96, 97, 127, 128, 129, 130)


def attention() -> onnx.ModelProto:
    """Scores of T queries and T keys, their softmax and what it weighs; reductions, narrow types, a value in place."""
    w, n = Weights(), helper.make_node
    return model(
        [
            n("MatMul", ["x", w(24, 24)], ["k"]),
            n("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
            n("MatMul", ["x", "kt"], ["s"]),
            n("Softmax", ["s"], ["p"], axis=-1),
            n("MatMul", ["p", "x"], ["v"]),
            n("ReduceMax", ["s"], ["m"], axes=[2], keepdims=1),
            n("ReduceMean", ["s"], ["e"], axes=[2], keepdims=1),
            n("Sub", ["s", "e"], ["c"]),
            n("Erf", ["c"], ["g"]),
            n("Mul", ["g", "s"], ["h"]),
            n("Add", ["h", "m"], ["y"]),
            n("Transpose", ["x"], ["xt"], perm=[0, 2, 1]),
            n("Greater", ["xt", w(1)], ["b"]),
            n("Where", ["b", "xt", "kt"], ["z"]),
        ],
        w,
        {"x": [2, "T", 24]},
        {"y": 3, "v": 3, "z": 3},
    )


@pytest.fixture(scope="module", params=["llvm -mcpu=x86-64-v2", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64-v4", "c"])
def executable(request: pytest.FixtureRequest) -> lb.Executable:
    return lb.compile(attention(), request.param, dims={"T": f"1..{LENGTHS[-1]}@60"})


@pytest.mark.sample(2)
def test_every_length_within_guard_pages(executable: lb.Executable) -> None:
    peer = onnxruntime.InferenceSession(attention().SerializeToString())
    for length in LENGTHS:
        x = np.random.default_rng(length).standard_normal((2, length, 24)).astype(np.float32)
        one = instance(executable, {"T": length}, ExtentValues())
        for side in ("before", "after"):
            for found, expected in zip(GuardedRun(one, side)(x), peer.run(None, {"x": x}), strict=True):
                assert found.shape == expected.shape
                assert np.abs(found - expected).max() <= TOLERANCE * max(1, np.abs(expected).max()), (length, side)


def test_lanes_lie_along_the_open_axis(tmp_path: Path) -> None:
    """Scores are computed by vectors of keys, the last of which is masked, for any number of them."""
    lb.compile(attention(), "llvm -mcpu=x86-64-v4", dims={"T": "1..130"}, dump=tmp_path)
    kernels = (tmp_path / "lowered.mlir").read_text().split("func.func @")
    for name in ("matmul", "softmax", "reduce"):
        (text, *_) = [kernel for kernel in kernels if kernel.startswith(name) and "create_mask" in kernel]
        assert "vector<16xf32>" in text


@pytest.mark.parametrize("stride", [3, 6])
def test_as_much_is_retained_of_a_strided_signal_as_its_length_divided_and_rounded_up(stride: int) -> None:
    """As resamplers do: the rows that are cut lie apart by what a convolution gives, which may be one more."""
    w, n = Weights(), helper.make_node
    resampler = model(
        [
            n("Conv", ["x", w(1, 1, 4)], ["c"], strides=[stride], pads=[1, 3]),
            n("Shape", ["x"], ["t"], start=2, end=3),
            n("Add", ["t", w.ints(stride - 1)], ["u"]),
            n("Div", ["u", w.ints(stride)], ["kept"]),
            n("Slice", ["c", w.ints(0), "kept", w.ints(2)], ["y"]),
        ],
        w,
        {"x": ["B", 1, "T"]},
        {"y": 3},
    )
    session = lb.Session(lb.compile(resampler))
    peer = onnxruntime.InferenceSession(resampler.SerializeToString(), providers=["CPUExecutionProvider"])
    for batch, length in ((1, 3), (2, 17), (3, 8 * stride), (2, 8 * stride + 1), (1, 25 * stride - 1)):
        x = np.random.default_rng(length).standard_normal((batch, 1, length)).astype(np.float32)
        (wanted,) = peer.run(None, {"x": x})
        (found,) = session(x)
        assert np.asarray(found).shape == wanted.shape
        assert np.abs(np.asarray(found) - wanted).max() <= TOLERANCE * np.abs(wanted).max()
