"""Kernels of one expression for each element, written as lowered functions are, and run on the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FunctionType,
    IntegerType,
    MemRefType,
    ModuleOp,
    StringAttr,
)
from xdsl.ir import Attribute, Block, Region, SSAValue

from landbridge.codegen.vulkan.image import generate_image
from landbridge.passes.lower.code import Code
from landbridge.passes.lower.grid.launch import Launcher, WorkItem
from landbridge.targets import Target
from landbridge.targets.grid import grid_limits
from tests.codegen.vulkan.launcher import Program, vulkan

Array = np.ndarray[Any, Any]
#: An expression: the code to write to, and the loaded operands; the result.
Expression = Callable[[Code, Sequence[SSAValue]], SSAValue]

_SIZE = 64


def type_of(dtype: Any) -> Attribute:
    """The IR's type of a numpy dtype."""
    kind = np.dtype(dtype)
    if kind == np.bool_:
        return IntegerType(1)
    if kind == ml_dtypes.bfloat16:
        return BFloat16Type()
    if kind.kind == "f":
        return {2: Float16Type, 4: Float32Type, 8: Float64Type}[kind.itemsize]()
    return IntegerType(8 * kind.itemsize)


def target() -> Target:
    """The target of the device that tests run on."""
    return Target.from_device(vulkan())


def module_of(kinds: Sequence[Attribute], result: Attribute, count: int, expression: Expression) -> ModuleOp:
    """A function ``f`` of ``count`` elements of ``kinds``, then of ``result``: one invocation computes one."""
    types = [MemRefType(kind, [count], memory_space=StringAttr("global")) for kind in (*kinds, result)]
    block = Block(arg_types=types)
    code = Code(block)
    limits = grid_limits(target())
    assert limits is not None

    def body(inner: Code, item: WorkItem) -> None:
        at = inner.add(inner.mul(item.group, _SIZE), item.thread)

        def element() -> None:
            loaded = [inner.load(b, at, k) for b, k in zip(block.args[:-1], kinds, strict=True)]
            inner.store(expression(inner, loaded), block.args[-1], at)

        inner.when(inner.inside(at, count), element)

    Launcher(code, limits).launch(-(-count // _SIZE), _SIZE, body)
    block.add_op(func.ReturnOp())
    code.finish()
    return ModuleOp([func.FuncOp("f", FunctionType.from_lists(types, []), Region(block))])


def compute(inputs: Sequence[Array], dtype: Any, expression: Expression) -> Array:
    """``expression`` of each element of ``inputs``, by the device."""
    module = module_of([type_of(a.dtype) for a in inputs], type_of(dtype), inputs[0].size, expression)
    result = np.zeros(inputs[0].size, dtype)
    Program(generate_image(module, target())).on_arrays("f", inputs, [result])
    return result
