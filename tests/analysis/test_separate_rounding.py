"""Kernels that need a product rounded before it is added run where the device does that."""

from __future__ import annotations

import pytest
from onnx import TensorProto, helper
from tests.testing.admitted import admitted
from tests.testing.honest_devices import NoStreams

import landbridge as lb
from landbridge.analysis.separate_rounding import rounds_separately
from landbridge.errors import FallbackWarning
from landbridge.ir.module import IRModule

TEXT = """builtin.module {{
  func.func @f(%0: f32, %1: f32) {{
    %2 = arith.mulf %0, %1{product} : f32
    %3 = arith.addf %2, %1{total} : f32
    func.return
  }}
}}"""
MAY = " fastmath<contract>"


@pytest.mark.parametrize(("product", "total", "separately"), [(MAY, MAY, False), ("", MAY, True), (MAY, "", True)])
def test_a_sum_of_a_product(product: str, total: str, separately: bool) -> None:
    module = IRModule.parse(TEXT.format(product=product, total=total), (lb.Target("llvm"),))
    (function,) = module.op.body.block.ops
    assert rounds_separately(function) is separately


@pytest.mark.parametrize("contraction", ["allowed", "free"])
def test_such_a_kernel_is_not_given_to_a_device_that_joins_them(contraction: str) -> None:
    shapes = {"x": (1, 2, 8, 8), "rois": (1, 4), "y": (1, 2, 2, 2)}
    x, rois, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items())
    of = helper.make_tensor_value_info("of", TensorProto.INT64, (1,))
    sizes = {"output_height": 2, "output_width": 2, "sampling_ratio": 0}
    node = helper.make_node("RoiAlign", ["x", "rois", "of"], ["y"], name="align", **sizes)
    graph = helper.make_graph([node], "aligned", [x, rois, of], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    with admitted(NoStreams()):
        target = lb.Target({**lb.Target.from_device("mutant").to_dict(), "contraction": contraction})
        if contraction == "allowed":
            lb.compile(model, target)
        else:
            with pytest.warns(FallbackWarning, match="'align': on the CPU, as it needs a product rounded"):
                lb.compile(model, target)
