"""What a builder has appended is taken back to a checkpoint."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block

from landbridge.executable.parts import SizeGuard
from landbridge.ir.checkpoint import Checkpoint
from landbridge.ir.graph_builder import GraphBuilder
from landbridge.ir.length_ops import LengthOp
from landbridge.ir.module import IRModule
from landbridge.ir.types import tensor_type
from landbridge.targets import Target


def _add(g: GraphBuilder) -> None:
    c = g.constant(np.arange(3, dtype=np.float32), "c")
    g.elementwise("add", [g.block.args[0], c], lambda s, a, b: a + b)


def test_the_same_is_built_again() -> None:
    module = IRModule(ModuleOp([]), (Target("llvm"),))
    g = GraphBuilder(module, Block(arg_types=[tensor_type((3,), "float32")]))
    _add(g)
    before, text = Checkpoint(g), (str(g.block), str(module.op), list(module.constants))
    g.constant(np.ones(3, np.float32), "c")
    _add(g)
    once = str(g.block), str(module.op), list(module.constants)
    g.guards.append(SizeGuard("", 1, 2))
    g.read_dimensions.add("n")
    g.data.new("k")
    before.restore()
    assert (str(g.block), str(module.op), list(module.constants)) == text
    assert (g.guards, g.read_dimensions, g.data.names) == ([], set(), frozenset())
    g.constant(np.ones(3, np.float32), "c")
    _add(g)
    assert (str(g.block), str(module.op), list(module.constants)) == once
    assert g.data.new("k").symbols.keys() == {"k"}


def test_a_length_is_declared_again() -> None:
    """It is declared once in a graph; what says which tensor it is goes with the node that is imported again."""
    total = tensor_type((), "int32")
    g = GraphBuilder(IRModule(ModuleOp([]), (Target("opencl"),)), Block(arg_types=[total, total]))
    first = g.length(g.block.args[0], 8)
    before = Checkpoint(g)
    once = g.length(g.block.args[1], 8)
    before.restore()
    assert (g.length(g.block.args[0], 8), g.length(g.block.args[1], 8)) == (first, once)
    assert [op.value for op in g.block.ops if isinstance(op, LengthOp)] == list(g.block.args)


def test_a_graph_that_was_begun_reads_nothing_any_more() -> None:
    g = GraphBuilder(IRModule(ModuleOp([]), (Target("llvm"),)), Block(arg_types=[tensor_type((3,), "float32")]))
    before = Checkpoint(g)
    inner = g.nested(Block())
    inner.elementwise("neg", [g.block.args[0]], lambda s, a: 0 - a)
    assert g.block.args[0].uses.get_length() == 1
    before.restore()
    assert not list(g.block.args[0].uses)


def test_a_kernel_that_was_taken_back_is_built_again() -> None:
    g = GraphBuilder(IRModule(ModuleOp([]), (Target("llvm"),)), Block(arg_types=[tensor_type((3,), "float32")]))
    before = Checkpoint(g)
    for _ in range(2):
        g.elementwise("neg", [g.block.args[0]], lambda s, a: 0 - a, depends_on=())
        assert len(g.module.prims()) == 1
        before.restore()
        assert not g.module.prims()
