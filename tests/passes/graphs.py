"""Small graphs written by hand, to try passes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineMap

from landbridge.ir.graph_builder import GraphBuilder
from landbridge.ir.graph_ops import PackOp, UnpackOp
from landbridge.ir.module import IRModule
from landbridge.ir.types import shape_of, tensor_type
from landbridge.targets import Target

Build = Callable[..., Sequence[SSAValue]]


def graph(inputs: Sequence[tuple[Sequence[int], str]], build: Build) -> IRModule:
    """A module whose @main is what ``build(g, *inputs)`` returns."""
    module = IRModule(ModuleOp([]), (Target("llvm"),))
    types = [tensor_type(shape, dtype) for shape, dtype in inputs]
    block = Block(arg_types=types)
    results = list(build(GraphBuilder(module, block), *block.args))
    block.add_op(func.ReturnOp(*results))
    signature = FunctionType.from_lists(types, [r.type for r in results])
    module.op.body.block.add_op(func.FuncOp("main", signature, Region(block)))
    return module


def relu(g: GraphBuilder, x: SSAValue) -> SSAValue:
    g.node = "relu"
    return g.elementwise("relu", [x], lambda s, a: s.maximum(a, 0.0))


def double(g: GraphBuilder, x: SSAValue) -> SSAValue:
    g.node = "double"
    return g.elementwise("double", [x], lambda s, a: a * 2.0)


def add(g: GraphBuilder, x: SSAValue, y: SSAValue) -> SSAValue:
    g.node = "add"
    return g.elementwise("add", [x, y], lambda s, a, b: a + b)


def row_sums(g: GraphBuilder, x: SSAValue) -> SSAValue:
    """``[m, n]`` to ``[m]``: no elementwise kernel."""
    m, n = shape_of(x.type)
    g.node = "row_sums"

    def build(p):  # type: ignore[no-untyped-def]
        ins = [(p.inputs[0], AffineMap.identity(2))]
        outs = [(p.outputs[0], lambda i, j: (i,))]
        p.generic("pr", [m, n], ins, outs, lambda s, acc, a: acc + a, init=0.0)

    return g.call("row_sums", [x], [((m,), "float32")], build)[0]


def conv3x3(g: GraphBuilder, x: SSAValue, weights: np.ndarray) -> SSAValue:
    """A convolution of ``[n, c, h, w]`` with constant ``[o, c, 3, 3]``, padded by one."""
    n, c, h, w = shape_of(x.type)
    o = weights.shape[0]
    g.node = "conv"

    def build(p):  # type: ignore[no-untyped-def]
        padded = p.pad(p.inputs[0], [0, 0, 1, 1], [0, 0, 1, 1], 0.0)
        ins = [
            (padded, lambda b, f, y, z, i, u, v: (b, i, y + u, z + v)),
            (p.inputs[1], lambda b, f, y, z, i, u, v: (f, i, u, v)),
        ]
        outs = [(p.outputs[0], lambda b, f, y, z, i, u, v: (b, f, y, z))]
        extents = [n, o, h, w, c, 3, 3]
        p.generic("pppprrr", extents, ins, outs, lambda s, acc, a, k: acc + a * k, init=0.0)

    return g.call("conv", [x, g.constant(weights, "w")], [((n, o, h, w), "float32")], build)[0]


def mirror(g: GraphBuilder, x: SSAValue) -> SSAValue:
    """``x[:, ::-1]`` of ``[m, n]``."""
    m, n = shape_of(x.type)

    def build(p):  # type: ignore[no-untyped-def]
        ins = [(p.inputs[0], lambda i, j: (i, j * -1 + (n - 1)))]
        p.generic("pp", [m, n], ins, [(p.outputs[0], AffineMap.identity(2))], lambda s, a: a)

    return g.call("mirror", [x], [((m, n), "float32")], build)[0]


def pack(g: GraphBuilder, x: SSAValue, axes: Sequence[int], tiles: Sequence[int]) -> SSAValue:
    op = PackOp(x, axes, tiles)
    x_block(g).add_op(op)
    return op.result


def unpack(g: GraphBuilder, x: SSAValue, axes: Sequence[int], tiles: Sequence[int], shape: Sequence[int]) -> SSAValue:
    op = UnpackOp(x, axes, tiles, tensor_type(shape, "float32"))
    x_block(g).add_op(op)
    return op.result


def x_block(g: GraphBuilder) -> Block:
    return g.block
