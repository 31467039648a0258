"""Shapes that real models compute, of files as they are: which sizes they can be run at, and what they give there."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

import landbridge as lb
from landbridge.errors import ShapeError


def model(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g {text}')


def expect_as_onnxruntime(made: onnx.ModelProto, session: lb.Session, *shapes: tuple[int, ...]) -> None:
    peer = onnxruntime.InferenceSession(made.SerializeToString())
    for shape in shapes:
        x = np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)
        (expected,) = peer.run(None, {"x": x})
        np.testing.assert_allclose(np.asarray(session(x)[0]), expected, 1e-5, 1e-6)


def test_what_grows_again_must_fit_what_it_is_put_beside() -> None:
    """As in the neck of YOLO: halves, rounded up, are doubled and concatenated with the whole, twice."""
    made = model(
        "(float[1, 2, H, 8] x) => (float[1, 6, h, w] y) {"
        "  a = MaxPool<kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1>(x)"
        "  b = MaxPool<kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1>(a)"
        "  s = Constant<value_floats = [1.0, 1.0, 2.0, 2.0]>()"
        '  c = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">(b, , s)'
        "  d = Concat<axis = 1>(c, a)"
        '  e = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">(d, , s)'
        "  y = Concat<axis = 1>(e, x) }"
    )
    executable = lb.compile(made)
    assert executable.dimensions["H"].multiple_of == 4
    session = lb.Session(executable, num_threads=1)
    expect_as_onnxruntime(made, session, (1, 2, 4, 8), (1, 2, 36, 8), (1, 2, 8, 8))
    with pytest.raises(ShapeError, match="axis 2 of input 'x' is 6"):
        session(np.zeros((1, 2, 6, 8), np.float32))


@pytest.mark.sample(2)
@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("dtype", [1, 11, 6])  # float, double, int32
def test_places_counted_in_numbers_of_another_kind(dtype: int, target: str) -> None:
    """As anchors are made: an extent is cast, and counted to."""
    made = model(
        "(float[2, W] x) => (float[2, w] y) {"
        "  s = Shape(x) one = Constant<value_int = 1>() w = Gather(s, one)"
        f"  limit = Cast<to = {dtype}>(w) z = Constant<value_int = 2>() first = Cast<to = {dtype}>(z)"
        f"  o = Constant<value_int = 3>() by = Cast<to = {dtype}>(o) r = Range(first, limit, by)"
        "  f = Cast<to = 1>(r) y = Expand(f, t) }"
    )
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.array([2, 1]), "t"))
    session = lb.Session(lb.compile(made, target), num_threads=1)
    expect_as_onnxruntime(made, session, (2, 3), (2, 40), (2, 17))
