"""Resize and Upsample against onnxruntime, by all modes and transformations, with extents known or open."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.errors import ShapeError
from landbridge.host_operators.resizing import resize as on_the_host

#: A rounding for each transformation by which no position of these extents is as near to one element as to another:
#: there onnxruntime, whose positions are f32, takes either.
ROUNDINGS = {
    "half_pixel": ("round_prefer_floor", "round_prefer_ceil"),
    "half_pixel_symmetric": ("round_prefer_floor", "round_prefer_ceil"),
    "pytorch_half_pixel": ("round_prefer_floor", "round_prefer_ceil"),
    "align_corners": ("round_prefer_floor", "floor"),
    "asymmetric": ("floor", "ceil"),
    "tf_half_pixel_for_nn": ("floor", "ceil"),
    "tf_crop_and_resize": ("round_prefer_floor", "round_prefer_ceil"),
}
SHAPE = (2, 3, 5, 7)
REGION = [0, 0, 0.13, 0.27, 1, 1, 0.71, 0.94]
WANTED: dict[str, list[list[float]]] = {
    "scales": [[1, 1, 1.7, 0.55], [1, 1, 2, 3]],
    "sizes": [[2, 3, 13, 9], [2, 3, 3, 4]],
}


def model(
    by: str, wanted: list[float], some: bool, is_open: bool, transform: str, **attributes: Any
) -> tuple[ModelProto, np.ndarray[Any, Any]]:
    """A Resize, and an input of it. ``some``: the axes that are resized are named, and no others."""
    axes = [2, 3] if some else [0, 1, 2, 3]
    opset = 11 if transform == "tf_half_pixel_for_nn" else 19
    given = np.array([wanted[a] for a in axes], np.float32 if by == "scales" else np.int64)
    region = np.array([REGION[a + half] for half in (0, 4) for a in axes], np.float32)
    absent = np.zeros(0, np.float32)
    named = {"roi": region if transform == "tf_crop_and_resize" else absent, "w": given, "none": absent}
    inputs = ["x", "roi", "w"] if by == "scales" else ["x", "roi", "none", "w"]
    if some:
        attributes["axes"] = axes
    node = helper.make_node("Resize", inputs, ["y"], coordinate_transformation_mode=transform, **attributes)
    graph = helper.make_graph(
        [node],
        "resize",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", "C", "H", "V"] if is_open else SHAPE)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", "c", "h", "v"])],
        [numpy_helper.from_array(named[name], name) for name in {*inputs[1:]}],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return made, np.random.default_rng(len(transform)).standard_normal(SHAPE).astype(np.float32)


def of_onnxruntime(made: ModelProto, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    (wanted,) = onnxruntime.InferenceSession(made.SerializeToString(), options).run(None, {"x": x})
    return np.asarray(wanted)


CASES = [
    (mode, transform, by, number, some, is_open)
    for mode, transform, by, number, some, is_open in product(
        ("nearest", "linear", "cubic"), ROUNDINGS, WANTED, (0, 1), (False, True), (False, True)
    )
    if not (transform == "tf_half_pixel_for_nn" and some)  # axes are of later opsets
]


@pytest.mark.sample(6)
@pytest.mark.parametrize(("mode", "transform", "by", "number", "some", "is_open"), CASES)
def test_as_onnxruntime(mode: str, transform: str, by: str, number: int, some: bool, is_open: bool) -> None:
    roundings = ROUNDINGS[transform] if mode == "nearest" else ("round_prefer_floor",)
    for rounding in roundings:
        made, x = model(by, WANTED[by][number], some, is_open, transform, mode=mode, nearest_mode=rounding)
        wanted = of_onnxruntime(made, x)
        (found,) = lb.Session(lb.compile(made), num_threads=1)(x)
        assert found.shape == wanted.shape
        # Both sum up to 16 products of weights to 1.2 and values to 4, onnxruntime with positions of f32.
        np.testing.assert_allclose(found, wanted, rtol=0, atol=0 if mode == "nearest" else 3e-5)


@pytest.mark.parametrize("transform", ROUNDINGS)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_on_the_host_as_onnxruntime(mode: str, transform: str) -> None:
    for (by, choices), rounding in product(WANTED.items(), ROUNDINGS[transform]):
        for wanted in choices:
            made, x = model(by, wanted, False, False, transform, mode=mode, nearest_mode=rounding)
            given = np.array(wanted, np.float32 if by == "scales" else np.int64)
            found = on_the_host(
                x,
                np.array(REGION, np.float32),
                *((given, None) if by == "scales" else (None, given)),
                mode=mode,
                nearest_mode=rounding,
                coordinate_transformation_mode=transform,
            )
            np.testing.assert_allclose(found, of_onnxruntime(made, x), rtol=0, atol=0 if mode == "nearest" else 3e-5)


@pytest.mark.sample(6)
@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize(("extent", "factor"), [(10, 0.7), (20, 0.35), (49, 1 / 49), (100, 0.29), (10, 0.6999998)])
def test_a_factor_is_what_its_f32_stands_for(extent: int, factor: float, is_open: bool) -> None:
    """0.7 of f32 is less than 7/10: ten times that is 7 all the same, as onnxruntime has it."""
    x = np.arange(extent, dtype=np.float32).reshape(1, 1, 1, extent)
    graph = helper.make_graph(
        [helper.make_node("Resize", ["x", "", "s"], ["y"], mode="nearest", nearest_mode="floor",
                          coordinate_transformation_mode="asymmetric")],
        "factor",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 1, "V" if is_open else extent])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 1, "v"])],
        [numpy_helper.from_array(np.array([1, 1, 1, factor], np.float32), "s")],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    (found,) = lb.Session(lb.compile(made, dims={"V": "2..200"} if is_open else None), num_threads=1)(x)
    np.testing.assert_array_equal(found, of_onnxruntime(made, x))


@pytest.mark.sample(7)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("operand", ["scales", "sizes"])
@pytest.mark.parametrize(("first", "given"), [("n", 0), (0, 0), (2, 0)])
def test_without_elements(mode, operand, first, given):
    """A batch of nobody, open or fixed, and an axis that has no elements before and after."""
    last = 4 if first != 2 else 0
    wanted = {"scales": [1.0, 1.0, 2.0, 2.0], "sizes": [given if first != 2 else 2, 1, 8, 2 * last]}[operand]
    tensor = numpy_helper.from_array(np.array(wanted, np.float32), "scales")
    if operand == "sizes":
        tensor = numpy_helper.from_array(np.array(wanted[2:], np.int64), "sizes")
    inputs = ["x", "", "scales"] if operand == "scales" else ["x", "", "", "sizes"]
    axes = {"axes": [2, 3]} if operand == "sizes" else {}
    node = helper.make_node("Resize", inputs, ["y"], mode=mode, **axes)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [first, 1, 4, last])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [first, 1, 8, 2 * last])
    resized = helper.make_model(
        helper.make_graph([node], "resize", [x], [y], [tensor]),
        opset_imports=[helper.make_opsetid("", 19)],
        ir_version=9,
    )
    session, peer = lb.Session(lb.compile(resized)), onnxruntime.InferenceSession(resized.SerializeToString())
    for batch in {given, 3} if first == "n" else {first}:
        data = np.ones((batch, 1, 4, last), np.float32)
        (ours,) = session(data)
        np.testing.assert_array_equal(np.asarray(ours), peer.run(None, {"x": data})[0])


def test_an_axis_of_none_gets_no_elements():
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 0, 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 8, 8])
    sizes = helper.make_tensor("sizes", TensorProto.INT64, [4], [1, 1, 8, 8])
    graph = helper.make_graph([helper.make_node("Resize", ["x", "", "", "sizes"], ["y"])], "resize", [x], [y], [sizes])
    with pytest.raises(
        ShapeError, match=r"along axis 2, which is resized from 0 to 8; the shape of X is \(1, 1, 0, 4\)"
    ):
        lb.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9))
