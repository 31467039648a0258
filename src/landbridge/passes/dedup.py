"""Deduplicates PrimFuncs with equal content, so that each kernel is generated once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from xdsl.dialects import func
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.rewriter import Rewriter

from landbridge.ir.graph_ops import CallOp
from landbridge.ir.module import IRModule
from landbridge.ir.traversal import operations_of
from landbridge.passes.registry import register_pass


@register_pass("dedup")
def dedup(module: IRModule) -> None:
    """Keep one PrimFunc of those that differ only in their names."""
    first: dict[Hashable, str] = {}
    representatives: dict[str, str] = {}
    for name, function in module.prims().items():
        representatives[name] = first.setdefault(content(function), name)
        if representatives[name] != name:
            Rewriter.erase_op(function)
    for op in operations_of(module.main, CallOp):
        callee = op.callee_name
        if representatives.get(callee, callee) != callee:
            op.callee_name = representatives[callee]


def content(function: func.FuncOp) -> Hashable:
    """Returns a key that is equal for functions that differ only in their names."""
    indices: dict[SSAValue, int] = {}
    attributes = _sorted(function.attributes)
    return (function.function_type, attributes, _block(function.body.block, indices))


def _block(block: Block, indices: dict[SSAValue, int]) -> Hashable:
    for argument in block.args:
        indices[argument] = len(indices)
    rows = []
    for op in block.ops:
        operands = tuple(indices[v] for v in op.operands)
        regions = tuple(_block(b, indices) for r in op.regions for b in r.blocks)
        for result in op.results:
            indices[result] = len(indices)
        types = tuple(r.type for r in op.results)
        rows.append((op.name, operands, _sorted(op.attributes), _sorted(op.properties), types, regions))
    return (tuple(a.type for a in block.args), tuple(rows))


def _sorted(attributes: Mapping[str, Attribute]) -> Hashable:
    return tuple((k, attributes[k]) for k in sorted(attributes))
