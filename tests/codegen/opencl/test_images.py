"""OpenCL C of images: whole pixels, for reading or for writing."""

from __future__ import annotations

import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from landbridge.codegen.opencl.image import generate_image
from landbridge.errors import CodegenError
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.types import VDeviceAttr, tensor_type
from landbridge.passes.lower import lowering_for
from landbridge.targets import Target

TARGET = Target("opencl -images")


def copied(dtype: str = "float32", lanes: int = 4) -> func.FuncOp:
    """A lowered copy of one image to another."""
    shape = (3, 5, lanes)
    ty = tensor_type(shape, dtype, VDeviceAttr.of(0, "global.texture", (1, 2)))
    prim = PrimBuilder("copy", [ty], [ty])
    operands = [(buffer, lambda *d: d) for buffer in (*prim.inputs, *prim.outputs)]
    prim.generic("ppp", shape, operands[:1], operands[1:], lambda s, x: x)
    return lowering_for(TARGET)(prim.finish())


@pytest.mark.parametrize("lanes", [1, 2, 4])
@pytest.mark.parametrize(("dtype", "ending"), [("float32", "f"), ("float16", "f"), ("int32", "i"), ("int8", "i")])
def test_a_pixel_is_one_call(dtype: str, ending: str, lanes: int) -> None:
    image = generate_image(ModuleOp([copied(dtype, lanes)]), TARGET)
    text = image.code.decode()
    assert text.count(f"read_image{ending}(") == text.count(f"write_image{ending}(") == 1
    assert text.count("read_only image2d_t") == text.count("write_only image2d_t") == 1
    assert image.functions["copy"].images == (0, 1)


def test_no_kernel_reads_what_it_writes() -> None:
    function = copied()
    source, destination = function.body.block.args
    destination.replace_all_uses_with(source)
    with pytest.raises(CodegenError, match=r"reads and writes memref<3x5x4xf32.*one of both"):
        generate_image(ModuleOp([function]), TARGET)


def test_elements_that_no_image_holds() -> None:
    with pytest.raises(CodegenError, match="images hold float32, float16, int32, int8"):
        generate_image(ModuleOp([copied("int64")]), TARGET)
