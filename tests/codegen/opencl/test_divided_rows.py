"""Long reductions that several workgroups share, as targets with many cores have them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import landbridge as lb
from landbridge.executable.device_image import DeviceImage
from tests.codegen.opencl.machine import run_executable

MANY_CORES = "opencl -num-cores=132"
SHAPES = [((1 << 19,), (0,)), ((3, 70001), (1,)), ((40000, 5), (0,)), ((2, 17, 30001), (0, 2))]


@pytest.mark.sample(4)
@pytest.mark.parametrize("reduce", ["ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceSum"])
@pytest.mark.parametrize(("shape", "axes"), SHAPES)
def test_parts_give_what_the_whole_gives(reduce: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).normal(1, 1, shape).astype(np.float32)
    node = helper.make_node(reduce, ["x", "axes"], ["r"], keepdims=0)
    after = helper.make_node("Neg", ["r"], ["y"])
    retained = [extent for axis, extent in enumerate(shape) if axis not in axes]
    graph = helper.make_graph(
        [node, after],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, retained)],
        [helper.make_tensor("axes", TensorProto.INT64, [len(axes)], axes)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    executable = lb.compile(model, MANY_CORES)
    image = executable.modules[0].image
    assert isinstance(image, DeviceImage)
    assert [len(function.launches) for function in image.functions.values()] == [2]
    (y,) = run_executable(executable, {"x": x})
    wide = x.astype(np.float64)
    wanted = {
        "ReduceMean": wide.mean(axes),
        "ReduceMax": wide.max(axes),
        "ReduceMin": wide.min(axes),
        "ReduceL2": np.sqrt(np.square(wide).sum(axes)),
        "ReduceSum": wide.sum(axes),
    }[reduce]
    np.testing.assert_allclose(y, -wanted, rtol=2e-6, atol=1e-6)  # blocks of sums: some units of the last place
