"""Masks of lanes that are known at run time, in OpenCL C on a real driver: no lane outside is read or written."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import FloatAttr, FunctionType, IntegerAttr, MemRefType, ModuleOp, f16, f32, i8, i64
from xdsl.ir import Attribute, Block, Region, SSAValue

from landbridge.codegen.opencl import generate
from landbridge.ir.kernel_attributes import set_task_count
from landbridge.ir.types import GLOBAL
from landbridge.passes.lower.code import Code
from landbridge.passes.lower.grid.launch import Launcher
from landbridge.sizes.size import dimension
from landbridge.targets import Target
from landbridge.targets.grid import grid_limits
from tests.codegen.opencl.launcher import Program

LANES = 8
LOW, HIGH = dimension("low", 0, 20), dimension("high", 0, 20)
TARGET = Target("opencl")
ELEMENTS: dict[str, tuple[Attribute, Attribute]] = {
    "float32": (f32, FloatAttr(-1.0, f32)),
    "float16": (f16, FloatAttr(-1.0, f16)),
    "int8": (i8, IntegerAttr(-1, i8)),
}


def first(code: Code, source: SSAValue, element: Attribute, fill: Attribute) -> SSAValue:
    return code.load_vector(source, 0, element, LANES, HIGH)


def between(code: Code, source: SSAValue, element: Attribute, fill: Attribute) -> SSAValue:
    return code.load_between(source, 0, element, LANES, LOW, HIGH, fill)


@cache
def program(dtype: str, load: Callable[..., SSAValue], masks_stores: bool) -> Program:
    """A kernel that copies eight elements: of the source, or to the result, it touches those a mask keeps."""
    element, fill = ELEMENTS[dtype]
    memory = MemRefType(element, [LANES], memory_space=GLOBAL)
    block = Block(arg_types=[memory, MemRefType(i64, [2], memory_space=GLOBAL), memory])
    source, words, result = block.args
    code, limits = Code(block, words, {LOW: 0, HIGH: 1}), grid_limits(TARGET)
    assert limits is not None

    def body(inner: Code, _: Any) -> None:
        value = load(inner, source, element, fill)
        inner.store_vector(value, result, 0, LANES, HIGH if masks_stores else 0)

    Launcher(code, limits, words).launch(1, 1, body)
    block.add_op(func.ReturnOp())
    code.finish()
    function = func.FuncOp("copy", FunctionType.from_lists(list(block.arg_types), []), Region(block))
    set_task_count(function, 1)
    return Program(generate(ModuleOp([function]), TARGET).image)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ELEMENTS)
@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 1), (0, 7), (0, 8), (0, 20), (3, 5), (5, 3), (2, 8), (7, 19)])
def test_only_lanes_of_the_mask_are_loaded(dtype: str, low: int, high: int) -> None:
    x = np.arange(1, LANES + 1).astype(dtype)
    lanes = np.arange(LANES)
    for load, kept, other in (
        (first, lanes < high, 0),
        (between, (lanes >= low) & (lanes < high), -1),
    ):
        held = x[: min(high, LANES)]  # what is after these is no memory of the operand
        found = np.zeros(LANES, dtype)
        program(dtype, load, False).on_arrays("copy", [held, np.array([low, high])], [found])
        np.testing.assert_array_equal(found, np.where(kept, x, np.array(other, dtype)))


@pytest.mark.parametrize("dtype", ELEMENTS)
@pytest.mark.parametrize("high", [0, 1, 7, 8, 20])
def test_only_lanes_of_the_mask_are_stored(dtype: str, high: int) -> None:
    x, count = np.arange(1, LANES + 1).astype(dtype), min(high, LANES)
    found = np.zeros(count, dtype)  # the bytes around it must stay
    program(dtype, first, True).on_arrays("copy", [x, np.array([0, high])], [found])
    np.testing.assert_array_equal(found, x[:count])
