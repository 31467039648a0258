"""The order of tasks: what no loop reads again goes as memory does."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir.affine import AffineExpr

from landbridge.codegen.registry import codegen_for
from landbridge.ir.kernel_attributes import task_count
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.types import tensor_type
from landbridge.passes.lower import lowering_for
from landbridge.targets import Target
from landbridge.vm.code_image import load_image

from .kernels import Array

HERE = Target("llvm")


def after_the_first_task(prim: PrimBuilder, inputs: list[Array], shape: tuple[int, ...]) -> tuple[Array, int]:
    """A result of which only the first task was run, NaN elsewhere, and how many tasks there are."""
    lowered = lowering_for(HERE)(prim.finish())
    count = task_count(lowered)
    assert isinstance(count, int)
    image = load_image(codegen_for("llvm")(ModuleOp([lowered]), HERE).image)
    kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(image.address("kernel"))
    result = np.full(shape, np.nan, np.float32)
    kernel((ctypes.c_void_p * (len(inputs) + 1))(*(a.ctypes.data for a in [*inputs, result])), 0, 1)
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
