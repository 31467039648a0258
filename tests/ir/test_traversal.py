"""Lists of operations are those of xDSL's own walks, at the time of the call."""

from __future__ import annotations

import pytest
from onnx import parser
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import Rewriter

from landbridge.frontend.onnx.import_request import ImportRequest
from landbridge.frontend.onnx.importer import import_onnx
from landbridge.ir.graph_ops import CallOp, IfOp, YieldOp
from landbridge.ir.module import IRModule
from landbridge.ir.traversal import all_operations, operations, operations_of
from landbridge.targets import Target

#: Regions within a region: a branch in a branch.
TEXT = """<ir_version: 10, opset_import: ["": 21]> g (float[4] x, bool a, bool b) => (float[4] y) {
    e = Exp(x)
    r = If(a) <
        then_branch = t () => (float[4] p) {
            p = If(b) <
                then_branch = tt () => (float[4] q) { q = Exp(e) },
                else_branch = te () => (float[4] s) { s = Neg(e) }>
        },
        else_branch = n () => (float[4] u) { u = Abs(e) }>
    y = Tanh(r)
}"""


@pytest.fixture
def module() -> IRModule:
    return import_onnx(ImportRequest(parser.parse_model(TEXT), (Target("llvm"),))).module


def test_operations_of_a_block_are_in_order_without_those_in_regions(module: IRModule) -> None:
    block = module.main.body.block
    assert operations(block) == list(block.ops)
    assert any(op.regions for op in operations(block))


def test_all_operations_are_those_of_a_walk(module: IRModule) -> None:
    for root in (module.op, module.main, *operations_of(module.main, IfOp)):
        assert all_operations(root) == list(root.walk())


def test_operations_of_a_kind_are_those_in_all_regions(module: IRModule) -> None:
    for kind in (CallOp, IfOp, YieldOp, func.FuncOp, ModuleOp):
        found = operations_of(module.op, kind)
        assert found == [op for op in module.op.walk() if isinstance(op, kind)]
        assert found
    assert len(operations_of(module.op, IfOp)) == 2
    assert operations_of(module.main, func.FuncOp) == [module.main]  # the root too


def test_a_list_does_not_change_with_the_block(module: IRModule) -> None:
    """A pass erases and inserts operations while it goes through a list."""
    block = module.main.body.block
    calls = operations_of(module.main, CallOp)
    before = len(operations(block))
    for op in calls:
        copy = op.clone()
        Rewriter.replace_op(op, copy)
    assert len(operations(block)) == before
    now = operations_of(module.main, CallOp)
    assert len(now) == len(calls)
    assert not {*now} & {*calls}
    assert all(op.parent is None for op in calls)


def test_an_empty_block_has_no_operations() -> None:
    module = ModuleOp([])
    assert operations(module.body.block) == []
    assert all_operations(module) == [module]
