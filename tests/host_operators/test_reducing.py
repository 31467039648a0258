"""Reductions and running sums as host functions, which run where axes would choose among too many programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import landbridge as lb
from landbridge.operators import REGISTRY, HostOperator

REDUCTIONS = sorted({each.op_type for each in REGISTRY.of_kind(HostOperator) if each.op_type.startswith("Reduce")})
RUNNING = ("CumSum", "CumProd")


@pytest.mark.filterwarnings("ignore::landbridge.errors.FallbackWarning")
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_reduction_along_axes_that_a_run_gives(name: str, keepdims: int) -> None:
    extents = ", ".join("abcde"[: 5 if keepdims else 1])
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 18]> g (float[2, 3, 4, 5, 6] x, int64[4] v) => (float[{extents}] y) '
        f"{{ y = {name}<keepdims = {keepdims}>(x, v) }}"
    )
    session = lb.Session(lb.compile(model), num_threads=1)
    peer = onnxruntime.InferenceSession(model.SerializeToString())
    # Of 120 factors near 1 the product is too: one of 1e20 would agree to 1e-5 with another that is off by much.
    least, most = (0.9, 1.1) if name == "ReduceProd" else (1, 2)
    x = np.random.default_rng(1).uniform(least, most, (2, 3, 4, 5, 6)).astype(np.float32)
    for axes in ([0, 1, 2, 3], [-1, 2, 0, 3]):
        (y,) = session(x, np.array(axes))
        (wanted,) = peer.run(None, {"x": x, "v": np.array(axes)})
        assert np.asarray(y).shape == wanted.shape
        np.testing.assert_allclose(np.asarray(y), wanted, 1e-5)


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("name", RUNNING)
def test_a_running_sum_or_product(name: str, axis: int, reverse: int, exclusive: int) -> None:
    x = 1 + np.random.default_rng(2).random((4, 3))
    found = REGISTRY.find(HostOperator, "", name, 26)
    assert found is not None
    y: Any = found.function(x, np.array(axis), exclusive=exclusive, reverse=reverse)
    reduced = np.sum if name == "CumSum" else np.prod
    lines, made = np.moveaxis(x, axis, 0), np.moveaxis(y, axis, 0)
    for i in range(len(lines)):
        part = lines[i + exclusive :] if reverse else lines[: i + 1 - exclusive]
        np.testing.assert_allclose(made[i], reduced(part, axis=0), 1e-12)
