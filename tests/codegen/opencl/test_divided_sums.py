"""Sums that several workgroups share, as targets with many cores have them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.executable.device_image import DeviceImage
from tests.codegen.opencl.machine import run_executable

MANY_CORES = "opencl -num-cores=132"


@pytest.mark.parametrize(("m", "k", "n"), [(16, 4096, 32), (13, 1500, 21)])
def test_parts_are_added_up_and_what_follows_sees_whole_sums(m: int, k: int, n: int) -> None:
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n), (n,)))
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["s"]),
        helper.make_node("Relu", ["s"], ["y"]),
    ]
    given, made = (helper.make_tensor_value_info(v, TensorProto.FLOAT, s) for v, s in (("x", (m, k)), ("y", (m, n))))
    weights = [numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")]
    model = helper.make_model(
        helper.make_graph(nodes, "g", [given], [made], weights),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    executable = lb.compile(model, MANY_CORES)
    image = executable.modules[0].image
    assert isinstance(image, DeviceImage)
    assert [len(function.launches) for function in image.functions.values()] == [2]
    (y,) = run_executable(executable, {"x": x})
    wanted = np.maximum(x.astype(np.float64) @ w + b, 0)
    assert np.abs(y - wanted).max() <= 1e-6 * k  # sums of k products of numbers about 1
