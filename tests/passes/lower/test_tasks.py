"""The order of tasks: what no loop reads again goes as memory does."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pytest
from tests.codegen.native import kernel_of
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir.affine import AffineExpr

from landbridge.codegen.registry import codegen_for
from landbridge.ir.kernel_attributes import has_sizes, sizes_of, task_count
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.types import tensor_type
from landbridge.passes.lower import lowering_for
from landbridge.sizes.size import Extent, Size, of_symbol
from landbridge.sizes.terms import Symbol
from landbridge.targets import Target
from landbridge.vm.code_image import load_image

from .kernels import Array

HERE = Target("llvm")


def at_sizes(extent: Extent | None, known: Mapping[str, int]) -> int:
    """The number that ``extent`` is where dimensions are what is ``known``."""
    assert extent is not None
    return extent.at(known) if isinstance(extent, Size) else extent


def after_the_first_task(
    prim: PrimBuilder, inputs: list[Array], shape: tuple[int, ...], known: Mapping[str, int] = MappingProxyType({})
) -> tuple[Array, int]:
    """A result of which only the first task was run, NaN elsewhere, and how many tasks there are; open extents are
    what is ``known``."""
    lowered = lowering_for(HERE)(prim.finish())
    count = at_sizes(task_count(lowered), known)
    image = load_image(codegen_for("llvm")(ModuleOp([lowered]), HERE).image)
    kernel = kernel_of(image, "kernel")
    result = np.full(shape, np.nan, np.float32)
    words = [np.array([at_sizes(size, known) for size in sizes_of(lowered)], np.int64)] if has_sizes(lowered) else []
    arrays = [*inputs, result, *words]
    kernel((ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays)), 0, 1)
    return result, count


@pytest.mark.parametrize("pixels", [12_000, 11_881])
def test_blocked_channels_are_unpacked_block_after_block(pixels: int) -> None:
    blocks = 8
    prim = PrimBuilder(
        "kernel",
        [tensor_type((blocks, pixels, 16), "float32")],
        [tensor_type((16 * blocks, pixels), "float32")],
    )

    def moved(_: ScalarBuilder, x: Value) -> Value:
        return x

    def plain(b: AffineExpr, i: AffineExpr, c: AffineExpr) -> tuple[AffineExpr, AffineExpr]:
        return b * 16 + c, i

    prim.generic(
        "ppp",
        [blocks, pixels, 16],
        [(prim.inputs[0], lambda b, i, c: (b, i, c))],
        [(prim.outputs[0], plain)],
        moved,
    )
    x = np.arange(blocks * pixels * 16, dtype=np.float32).reshape(blocks, pixels, 16)
    y, count = after_the_first_task(prim, [x], (16 * blocks, pixels))
    written = ~np.isnan(y)
    assert count > 1
    assert written[0, : pixels // 16 * 16].all()  # what fills no vector has tasks of its own
    assert not written[-16:].any()
    np.testing.assert_array_equal(y[written], x.transpose(0, 2, 1).reshape(y.shape)[written])


@pytest.mark.parametrize("is_open", [False, True])
def test_lines_of_an_image_are_unpacked_one_after_the_other(is_open: bool) -> None:
    blocks, known = 6, {"h": 170, "w": 209}
    height, width = (of_symbol(Symbol(name)) if is_open else number for name, number in known.items())
    prim = PrimBuilder(
        "kernel",
        [tensor_type((blocks, height, width, 16), "float32")],
        [tensor_type((16 * blocks, height, width), "float32")],
    )
    prim.generic(
        "pppp",
        [height, blocks, width, 16],
        [(prim.inputs[0], lambda h, b, w, c: (b, h, w, c))],
        [(prim.outputs[0], lambda h, b, w, c: (b * 16 + c, h, w))],
        lambda s, x: x,
    )
    shape = (16 * blocks, *known.values())
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(blocks, *known.values(), 16)
    y, count = after_the_first_task(prim, [x], shape, known)
    written = ~np.isnan(y)
    assert count > 1 and not written.all()
    lines = int(written.any(0).any(1).sum())
    assert written[:16, : lines - 1, : known["w"] // 16 * 16].all()
    assert not written[16:].any() and not written[:, lines:].any()
    np.testing.assert_array_equal(y[written], x.transpose(0, 3, 1, 2).reshape(shape)[written])
