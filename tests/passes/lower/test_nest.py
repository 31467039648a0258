"""Nests of a kernel: which stages share their loops."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

import landbridge as lb

OPERATORS = {
    "Softmax": "s = Softmax (x)",
    "Softmax of columns": "s = Softmax <axis = 0> (x)",
    "LpNormalization": "s = LpNormalization (x)",
    "Tanh": "s = Tanh (x)",
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("operator", OPERATORS)
def test_a_stage_over_the_first_of_what_another_writes(operator: str, axis: int, target: str) -> None:
    """It begins where the other does, and ends before: it has loops of its own."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]> g (float[9, 17] x) => (float[N, M] y) {{
            {OPERATORS[operator]}
            from = Constant <value_ints = [0]> ()
            to = Constant <value_ints = [5]> ()
            along = Constant <value_ints = [{axis}]> ()
            part = Slice (s, from, to, along)
            y = Relu (part) }}"""
    )
    x = np.random.default_rng(1).standard_normal((9, 17), "f4")
    peer = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = lb.Session(lb.compile(model, target))({"x": x}).values()
    np.testing.assert_allclose(np.asarray(found), peer.run(None, {"x": x})[0], rtol=1e-5, atol=1e-6)


@pytest.mark.sample(11)
@pytest.mark.parametrize("target", ["llvm", "llvm -vector-bits=128 -vector-registers=16", "c"])
@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
@pytest.mark.parametrize(
    ("shape", "pads"),
    [((51,), (3, 0)), ((4, 51), (0, 3, 0, 1)), ((4, 51), (1, 3, 0, 1)), ((2, 3, 8, 40), (0, 0, 1, 1, 0, 0, 1, 1))],
)
def test_a_stage_over_what_several_nests_write(
    shape: tuple[int, ...], pads: tuple[int, ...], mode: str, target: str
) -> None:
    """It reads memory: joined to the last of them it would compute only what that one writes."""
    rank = len(shape)
    padded = [n + low + high for n, low, high in zip(shape, pads[:rank], pads[rank:], strict=True)]
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]> g (float{list(shape)} x) => (float{padded} y) {{
            pads = Constant <value_ints = {list(pads)}> ()
            padded = Pad <mode = "{mode}"> (x, pads)
            y = Neg (padded) }}"""
    )
    x = np.random.default_rng(1).standard_normal(shape, "f4")
    (found,) = lb.Session(lb.compile(model, target))({"x": x}).values()
    wanted = -np.pad(x, list(zip(pads[:rank], pads[rank:], strict=True)), mode)  # type: ignore[call-overload]
    np.testing.assert_array_equal(np.asarray(found), wanted)
