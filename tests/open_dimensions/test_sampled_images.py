"""Pictures of open height and width that are looked up at computed places, against torch and onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import landbridge as lb
from tests.selection.installed import package

torch = package("torch", "peers")
functional: Any = torch.nn.functional

#: Batch, height and width of the picture, height of the result.
SIZES = [(1, 1, 1, 1), (2, 3, 5, 4), (1, 9, 17, 40), (3, 2, 1, 2), (1, 1, 33, 3)]
R = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return R.standard_normal(shape).astype(np.float32)


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]> g {text}')


@pytest.mark.sample(6)
@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_samples_of_a_picture_of_any_size(mode: str, padding: str, align: int, target: str) -> None:
    session = lb.Session(
        lb.compile(
            parsed(
                f"""(float[n,2,h,w] x, float[n,p,w,2] g) => (float[n,2,p,w] y) {{
                y = GridSample<mode = "{mode}", padding_mode = "{padding}", align_corners = {align}>(x, g) }}"""
            ),
            target,
        )
    )
    assert all(session.executable.dimensions[name].high is None for name in "nhwp")
    for n, h, w, p in SIZES:
        x, grid = floats(n, 2, h, w), floats(n, p, w, 2) * np.float32(0.9)
        method = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
        wanted = functional.grid_sample(torch.from_numpy(x), torch.from_numpy(grid), method, padding, bool(align))
        # A coordinate is off by some eps of the extent, at most 33, and a picture's slope is about 6.
        np.testing.assert_allclose(session(x, grid)[0], wanted.numpy(), atol=33 * 6 * 4 * 1.2e-7)


@pytest.mark.filterwarnings("ignore:Since version 1.3.0, affine_grid:UserWarning")  # torch, of a lone pixel
@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize("align", [0, 1])
def test_a_grid_of_the_size_of_a_picture(align: int, axes: int) -> None:
    extents = ["h", "w", "d"][:axes]
    session = lb.Session(
        lb.compile(
            parsed(
                f"""(float[n,2,{",".join(extents)}] x, float[n,{axes},{axes + 1}] t)
                => (float[n,{",".join(extents)},{axes}] y) {{
                s = Shape(x) y = AffineGrid<align_corners = {align}>(t, s) }}"""
            )
        )
    )
    for n, h, w, _ in SIZES:
        size, theta = (n, 2, h, w, h + 1)[: axes + 2], floats(n, axes, axes + 1)
        wanted = functional.affine_grid(torch.tensor(theta, dtype=torch.float64), size, bool(align))
        # A sum of up to four products of about 10 that may cancel.
        np.testing.assert_allclose(session(np.zeros(size, np.float32), theta)[0], wanted.numpy(), rtol=1e-6, atol=5e-6)


def test_a_grid_for_one_picture_of_a_known_size() -> None:
    """ONNX's own definition has no body for one picture."""
    text = "(float[1,2,3] t) => (float[1,4,5,2] y) <int64[4] s = {1, 3, 4, 5}> { y = AffineGrid(t, s) }"
    theta = floats(1, 2, 3)
    (y,) = lb.Session(lb.compile(parsed(text)))(theta)
    wanted = functional.affine_grid(torch.tensor(theta, dtype=torch.float64), (1, 3, 4, 5), False)
    np.testing.assert_allclose(y, wanted.numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("order", [0, 1])
def test_where_maxima_lie(order: int) -> None:
    model = parsed(
        f"""(float[n,3,h,w] x) => (float[n,3,a,b] y, int64[n,3,a,b] i) {{
        y, i = MaxPool<kernel_shape = [2,3], strides = [2,1], pads = [1,1,1,1], storage_order = {order}>(x) }}"""
    )
    session, truth = lb.Session(lb.compile(model)), onnxruntime.InferenceSession(model.SerializeToString())
    for n, h, w, _ in SIZES:
        x = floats(n, 3, h, w)
        for found, wanted in zip(session(x), truth.run(None, {"x": x}), strict=True):
            np.testing.assert_array_equal(found, wanted)
