"""Tensors that cannot be images are refused where they are placed."""

from __future__ import annotations

import pytest
from onnx import ModelProto, TensorProto, helper

import landbridge as lb
from landbridge.errors import PlacementError
from landbridge.targets import Target

GPU = "opencl -images -image-width=64 -image-height=32"


def model(shape: tuple[int, ...], dtype: int = TensorProto.FLOAT) -> ModelProto:
    """``y = (x + x) + x``."""
    values = [helper.make_tensor_value_info(name, dtype, shape) for name in "xy"]
    nodes = [
        helper.make_node("Add", ["x", "x"], ["r"], name="twice"),
        helper.make_node("Add", ["r", "x"], ["y"], name="add"),
    ]
    graph = helper.make_graph(nodes, "two", values[:1], values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(
    ("shape", "dtype", "separators", "found", "legal"),
    [
        ((2, 3, 5), TensorProto.FLOAT, "1,2", "5 elements in a pixel", "legal: 1, 2 or 4"),
        ((33, 3, 4), TensorProto.FLOAT, "1,2", "33 rows of 3 pixels", "1 to 32 rows of 1 to 64"),
        ((3, 65, 4), TensorProto.FLOAT, "1,2", "3 rows of 65 pixels", "1 to 32 rows of 1 to 64"),
        ((2, 3, 4), TensorProto.UINT8, "1,2", "elements of uint8", "float32, float16, int32, int8"),
        ((2, 3, 4), TensorProto.INT64, "1,2", "elements of int64", "float32, float16, int32"),
    ],
)
def test_what_no_image_can_be(shape: tuple[int, ...], dtype: int, separators: str, found: str, legal: str) -> None:
    with pytest.raises(PlacementError) as refused:
        lb.compile(model(shape, dtype), target=GPU, place={"twice": f"opencl@global.texture[{separators}]"})
    for text in ("node 'twice'", str(list(shape)), f"[{separators.replace(',', ', ')}]", found, legal):
        assert text in str(refused.value)


def test_formats_that_the_device_has_not() -> None:
    gpu = f"{GPU} -image-formats=float32x4,float32x1,int32x4"
    lb.compile(model((2, 3, 4)), target=gpu, place={"twice": "opencl@global.texture[1,2]"})
    with pytest.raises(PlacementError, match=r"'twice'.*2 elements of float32 in a pixel.* no format for; legal: 1, 4"):
        lb.compile(model((2, 3, 2)), target=gpu, place={"twice": "opencl@global.texture[1,2]"})
    with pytest.raises(PlacementError, match=r"4 elements of int8 in a pixel.*legal: none"):
        lb.compile(model((2, 3, 4), TensorProto.INT8), target=gpu, place={"twice": "opencl@global.texture[1,2]"})


def test_an_input_is_named() -> None:
    with pytest.raises(PlacementError, match=r"input 'x'.*3 elements in a pixel"):
        lb.compile(model((2, 3, 3)), target=GPU, place={"x": "opencl@global.texture[1,2]"})


def test_kernels_without_images() -> None:
    """A target of grids that states such memory and no images."""
    memory = [{"scope": "global", "host_access": "read_write", "coherent": True}]
    memory += [{"scope": "global.texture", "host_access": "none", "coherent": False, "ndim": 3}]  # type: ignore[dict-item]
    target = Target({"kind": "vulkan", "memory": memory})
    with pytest.raises(PlacementError, match=r"node 'twice'.*target 'vulkan' use no images; legal: a flat scope"):
        lb.compile(model((2, 3, 4)), target=target, place={"twice": "vulkan@global.texture[1,2]"})
