"""Rows of which there are any number: whole tiles, a last one that overlaps, one by one, inside the padding and not."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

import landbridge as lb
from landbridge.executable.instance import ExtentValues, instance
from landbridge.executable.instructions import Call, flattened
from tests.open_dimensions.models import Weights, model
from tests.witnesses.guard_pages import GuardedRun

#: Relative to the largest number of a result: sums of some hundred f32 products in another order.
TOLERANCE = 3e-6
WIDTHS = range(1, 66)


def convolutions() -> onnx.ModelProto:
    """Layers over N x 3 x 5 x W: plain, depthwise, with padding at one side, strides, and sums in place."""
    w, n = Weights(), helper.make_node
    return model(
        [
            n("Conv", ["x", w(16, 3, 3, 3), w(16)], ["a"], pads=[1, 1, 1, 1]),
            n("Conv", ["a", w(16, 1, 5, 5)], ["b"], pads=[2, 2, 2, 2], group=16),
            n("Conv", ["b", w(32, 16, 1, 3)], ["c"], pads=[0, 2, 0, 0]),
            n("Conv", ["a", w(32, 16, 1, 1)], ["d"]),
            n("Sigmoid", ["d"], ["e"]),
            n("Add", ["c", "e"], ["f"]),
            n("Conv", ["f", w(16, 32, 3, 3)], ["g"], pads=[1, 0, 1, 3], strides=[2, 3]),
            n("MaxPool", ["g"], ["y"], kernel_shape=[1, 2], pads=[0, 1, 0, 1]),
            n("Conv", ["f", w(32, 1, 3, 3)], ["h"], pads=[1, 0, 1, 2], group=32),
            n("Conv", ["h", w(32, 1, 1, 17)], ["z"], pads=[0, 8, 0, 8], group=32),
            n("Conv", ["f", w(32, 32, 3, 5)], ["k"], pads=[1, 3, 1, 1]),
            n("Conv", ["a", w(32, 16, 1, 1)], ["l"]),
            n("Sigmoid", ["l"], ["m"]),
            n("Add", ["k", "m"], ["o"]),
            n("MaxPool", ["o"], ["u"], kernel_shape=[2, 1]),
        ],
        w,
        {"x": [1, 3, 5, "W"]},
        {"y": 4, "z": 4, "u": 4},
    )


@pytest.fixture(scope="module", params=["llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64-v4", "c"])
def executable(request: pytest.FixtureRequest) -> lb.Executable:
    return lb.compile(convolutions(), request.param, dims={"W": f"1..{WIDTHS[-1]}@40"})


@pytest.mark.sample(1)
def test_every_width_within_guard_pages(executable: lb.Executable) -> None:
    peer = onnxruntime.InferenceSession(convolutions().SerializeToString())
    for width in WIDTHS:
        x = np.random.default_rng(width).standard_normal((1, 3, 5, width)).astype(np.float32)
        one = instance(executable, {"W": width}, ExtentValues())
        for side in ("before", "after"):
            for found, expected in zip(GuardedRun(one, side)(x), peer.run(None, {"x": x}), strict=True):
                assert found.shape == expected.shape
                assert np.abs(found - expected).max() <= TOLERANCE * max(1, np.abs(expected).max()), (width, side)


def test_a_sum_is_in_place(executable: lb.Executable) -> None:
    called = [i.function for i in flattened(executable.main.instructions) if isinstance(i, Call)]
    assert sum(name.endswith("_in_place") for name in called) >= 2


@pytest.mark.sample(1)
@pytest.mark.parametrize("target", ["llvm -mcpu=x86-64-v3", "c"])
def test_products_in_place_store_each_row_once(target: str) -> None:
    """The last tile lies over the one before it, whose rows have been replaced by then: they are not added to again."""
    w, n = Weights(), helper.make_node
    nodes = [
        n("Relu", ["x"], ["a"]),
        n("MatMul", ["a", w(40, 72)], ["b"]),
        n("Relu", ["b"], ["c"]),
        n("MatMul", ["c", w(72, 40)], ["d"]),
        n("Add", ["a", "d"], ["e"]),
        n("MatMul", ["e", w(40, 24)], ["y"]),
    ]
    products = model(nodes, w, {"x": ["rows", 40]}, {"y": 2})
    executable = lb.compile(products, target, dims={"rows": "1..33@24"})
    assert any(i.function.endswith("_in_place") for i in executable.main.instructions if isinstance(i, Call))
    peer = onnxruntime.InferenceSession(products.SerializeToString())
    for rows in range(1, 34):
        x = np.random.default_rng(rows).standard_normal((rows, 40)).astype(np.float32)
        one = instance(executable, {"rows": rows}, ExtentValues())
        (found,), (expected,) = GuardedRun(one, "after")(x), peer.run(None, {"x": x})
        assert np.abs(found - expected).max() <= TOLERANCE * max(1, np.abs(expected).max()), rows


@pytest.mark.parametrize("channels", [1, 16])
def test_dilated_windows_over_any_width(channels: int) -> None:
    """Nothing is stated of the width: that reads are inside follows from the floors where windows begin."""
    w = Weights()
    node = helper.make_node("Conv", ["x", w(channels, channels, 3, 3)], ["y"], pads=[3, 1, 3, 1], dilations=[3, 1])
    dilated = model([node], w, {"x": [1, channels, 32, "W"]}, {"y": 4})
    session = lb.Session(lb.compile(dilated))
    peer = onnxruntime.InferenceSession(dilated.SerializeToString())
    for width in (1, 2, 17, 40):
        x = np.random.default_rng(width).standard_normal((1, channels, 32, width)).astype(np.float32)
        (found,), (expected,) = session(x), peer.run(None, {"x": x})
        assert np.abs(np.asarray(found) - expected).max() <= TOLERANCE * max(1, np.abs(expected).max())
