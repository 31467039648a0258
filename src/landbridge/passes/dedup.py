"""Keep one of PrimFuncs that are equal by content, so that each kernel is generated once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from xdsl.dialects import func
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.rewriter import Rewriter

from landbridge.ir.graph_ops import CallOp
from landbridge.ir.module import IRModule
from landbridge.passes.registry import register_pass


@register_pass("dedup")
def dedup(module: IRModule) -> None:
    """Keep one PrimFunc of those that are equal but for their names."""
    first: dict[Hashable, str] = {}
    kept: dict[str, str] = {}
    for name, function in module.prims().items():
        kept[name] = first.setdefault(content(function), name)
        if kept[name] != name:
            Rewriter.erase_op(function)
    for op in module.main.walk():
        if isinstance(op, CallOp):
            callee = op.callee_name
            if kept.get(callee, callee) != callee:
                op.callee_name = kept[callee]


def content(function: func.FuncOp) -> Hashable:
    """A key that is equal for functions that differ in their name alone."""
    numbers: dict[SSAValue, int] = {}
    attributes = _sorted(function.attributes)
    return (function.function_type, attributes, _block(function.body.block, numbers))


def _block(block: Block, numbers: dict[SSAValue, int]) -> Hashable:
    for argument in block.args:
        numbers[argument] = len(numbers)
    rows = []
    for op in block.ops:
        operands = tuple(numbers[v] for v in op.operands)
        regions = tuple(_block(b, numbers) for r in op.regions for b in r.blocks)
        for result in op.results:
            numbers[result] = len(numbers)
        types = tuple(r.type for r in op.results)
        rows.append((op.name, operands, _sorted(op.attributes), _sorted(op.properties), types, regions))
    return (tuple(a.type for a in block.args), tuple(rows))


def _sorted(attributes: Mapping[str, Attribute]) -> Hashable:
    return tuple((k, attributes[k]) for k in sorted(attributes))
