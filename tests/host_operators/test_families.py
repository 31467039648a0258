"""The package's host operators against the stored results of ONNX's suite, and by what must hold of random numbers."""

from __future__ import annotations

import unittest
from typing import Any

import numpy as np
import onnx
import pytest

import landbridge as lb
from landbridge.operators import REGISTRY, HostOperator
from landbridge.testing import onnx_backend
from tests.host_operators.test_reducing import REDUCTIONS, RUNNING
from tests.open_dimensions.test_operands import CASES as OPERANDS
from tests.ops.node_cases import suite

pytestmark = pytest.mark.filterwarnings("ignore::landbridge.FallbackWarning")

_PATTERNS = (
    "nonmaxsuppression", "nonzero", "compress", "unique", "col2im", "deform_conv", "roialign", "maxunpool", "det_",
    "bitcast", "tensorscatter", "tfidf", "melweight", "hannwindow", "hammingwindow", "resize", "upsample",
    "affine_grid_2d_cpu", "affine_grid_3d_cpu", "grid_2d_align_corners_cpu", "grid_3d_align_corners_cpu",
    "training_dropout", "image_decoder_decode_", "tree_ensemble_",
)  # fmt: skip
#: Cases of a fractional extent, which are as onnxruntime has them: docs/numbers.md, "Resize".
_AS_ONNXRUNTIME = {f"test_resize_downsample_scales_{mode}_align_corners_cpu" for mode in ("linear", "cubic")}
_CASES = {
    name: item.func
    for category in suite(onnx_backend.LandbridgeBackend, __name__)._test_items.values()
    for name, item in category.items()
    if name.endswith("_cpu") and any(pattern in name for pattern in _PATTERNS) and name not in _AS_ONNXRUNTIME
}


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", sorted(_CASES))
def test_the_suite(name: str) -> None:
    _CASES[name](unittest.TestCase())


def test_every_family_has_cases() -> None:
    assert len(_CASES) > 60
    families = {operator.op_type for operator in REGISTRY.of_kind(HostOperator) if not operator.domain}
    families -= {"RandomUniform", "RandomNormal", "RandomUniformLike", "RandomNormalLike", "Multinomial"}
    names = " ".join(_CASES).replace("_", "")
    # Those that a kernel is made of unless its operands are computed are asked so in tests/open_dimensions.
    bodies = " ".join(case.body for case in OPERANDS.values())
    requested = {name for name in families if name.lower() in names or f"{name}(" in bodies.replace("<", "(")}
    assert not families - requested - {*REDUCTIONS, *RUNNING}


def drawn(op_type: str, inputs: dict[str, Any], runs: int = 1, **attributes: Any) -> list[np.ndarray[Any, Any]]:
    node = onnx.helper.make_node(op_type, list(inputs), ["y"], **attributes)
    values = [
        onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in inputs.items()
    ]
    dims = ["a", "b"]
    kind = attributes.get("dtype", 6 if op_type == "Multinomial" else 1)
    graph = onnx.helper.make_graph([node], "g", values, [onnx.helper.make_tensor_value_info("y", kind, dims)])
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    session = lb.Session(lb.compile(made))
    return [np.asarray(session(*inputs.values())[0]) for _ in range(runs)]


LIKE = {"x": np.zeros((100, 80), np.float32)}


@pytest.mark.parametrize("op_type", ["RandomUniform", "RandomUniformLike"])
def test_uniform(op_type: str) -> None:
    given: dict[str, Any] = {"shape": [100, 80]} if op_type == "RandomUniform" else {}
    inputs = {} if given else LIKE
    first, second = drawn(op_type, inputs, 2, seed=3.0, low=-1.0, high=2.0, **given)
    assert first.shape == (100, 80) and first.dtype == np.float32
    assert first.min() >= -1 and first.max() < 2 and abs(first.mean() - 0.5) < 0.05
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, drawn(op_type, inputs, seed=3.0, low=-1.0, high=2.0, **given)[0])
    assert not np.array_equal(first, drawn(op_type, inputs, seed=4.0, low=-1.0, high=2.0, **given)[0])


@pytest.mark.parametrize("op_type", ["RandomNormal", "RandomNormalLike"])
def test_normal(op_type: str) -> None:
    given: dict[str, Any] = {"shape": [100, 80]} if op_type == "RandomNormal" else {}
    (found,) = drawn(op_type, {} if given else LIKE, mean=2.0, scale=0.5, dtype=11, **given)
    assert found.dtype == np.float64 and found.shape == (100, 80)
    assert abs(found.mean() - 2) < 0.05 and abs(found.std() - 0.5) < 0.05


def test_multinomial() -> None:
    logs = np.log(np.array([[0.5, 0.25, 0.25], [0.1, 0.0, 0.9]], np.float32) + 1e-30)
    (found,) = drawn("Multinomial", {"x": logs}, sample_size=4000, seed=1.0)
    assert found.shape == (2, 4000) and found.dtype == np.int32
    shares = [np.bincount(row, minlength=3) / 4000 for row in found]
    np.testing.assert_allclose(shares, [[0.5, 0.25, 0.25], [0.1, 0, 0.9]], atol=0.04)
