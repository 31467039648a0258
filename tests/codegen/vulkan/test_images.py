"""SPIR-V of images: whole pixels of unsigned integers, fetched or written."""

from __future__ import annotations

import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from landbridge.codegen.vulkan.image import generate_image
from landbridge.errors import CodegenError
from landbridge.executable.device_image import DeviceImage
from landbridge.executable.spirv import Capability, ImageFormat, Op, instructions, words_of
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.types import VDeviceAttr, tensor_type
from landbridge.passes.lower import lowering_for
from landbridge.targets import Target
from tests.codegen.vulkan.launcher import check_legal

TARGET = Target("vulkan -images -small-elements")
FORMATS = {
    ("float32", 1): ImageFormat.R32ui,
    ("float32", 2): ImageFormat.Rg32ui,
    ("int32", 4): ImageFormat.Rgba32ui,
    ("float16", 1): ImageFormat.R16ui,
    ("float16", 2): ImageFormat.Rg16ui,
    ("float16", 4): ImageFormat.Rgba16ui,
    ("int8", 1): ImageFormat.R8ui,
    ("int8", 2): ImageFormat.Rg8ui,
    ("int8", 4): ImageFormat.Rgba8ui,
}
PLAIN = {("float32", 1), ("int32", 4), ("float16", 4), ("int8", 4)}


def copied(dtype: str, lanes: int, count: int = 1) -> func.FuncOp:
    """A lowered sum of ``count`` images (a copy of one) into another."""
    shape = (3, 5, lanes)
    ty = tensor_type(shape, dtype, VDeviceAttr.of(0, "global.texture", (1, 2)))
    prim = PrimBuilder("copy", [ty] * count, [ty])
    operands = [(buffer, lambda *d: d) for buffer in (*prim.inputs, *prim.outputs)]
    prim.generic("ppp", shape, operands[:count], operands[count:], lambda s, *x: sum(x[1:], x[0]))
    return lowering_for(TARGET)(prim.finish())


def found(image: DeviceImage, op: Op) -> list[tuple[int, ...]]:
    return [tuple(x) for opcode, x in instructions(words_of(image.code)) if opcode == op]


@pytest.mark.parametrize(("dtype", "lanes"), FORMATS)
def test_a_pixel_is_one_instruction(dtype: str, lanes: int) -> None:
    image = generate_image(ModuleOp([copied(dtype, lanes)]), TARGET)
    check_legal(image.code)
    assert len(found(image, Op.ImageFetch)) == len(found(image, Op.ImageWrite)) == 1
    read, written = found(image, Op.TypeImage)
    assert read[-2:] == (1, ImageFormat.Unknown) and written[-2:] == (2, FORMATS[dtype, lanes])
    extended = (Capability.StorageImageExtendedFormats,) in found(image, Op.Capability)
    assert extended == ((dtype, lanes) not in PLAIN)
    assert image.functions["copy"].images == (0, 1)


def test_no_kernel_reads_what_it_writes() -> None:
    function = copied("float32", 4)
    source, destination = function.body.block.args
    destination.replace_all_uses_with(source)
    with pytest.raises(CodegenError, match=r"reads and writes memref<3x5x4xf32.*one of both"):
        generate_image(ModuleOp([function]), TARGET)


def test_elements_that_no_image_holds() -> None:
    with pytest.raises(CodegenError, match="images hold float32, float16, int32, int8"):
        generate_image(ModuleOp([copied("int64", 4)]), TARGET)


@pytest.mark.parametrize(("option", "subject"), [("storage", "1 images to write"), ("sampled", "2 images to read")])
def test_more_images_than_a_kernel_may_take(option: str, subject: str) -> None:
    module = ModuleOp([copied("float32", 4, count=2)])
    limits = {"max-storage-images": 1, "max-sampled-images": 2}
    few = Target({**TARGET.to_dict(), **limits})
    check_legal(generate_image(module, few).code)
    fewer = Target({**TARGET.to_dict(), **limits, f"max-{option}-images": limits[f"max-{option}-images"] - 1})
    with pytest.raises(
        CodegenError, match=rf"uses {subject}; target 'vulkan' states -max-{option}-images=.; place fewer"
    ):
        generate_image(module, fewer)
