"""The operand of lowered functions of an open program that holds their Sizes, one 64-bit word for each."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeGuard

from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.rewriter import Rewriter

from landbridge.ir.length_ops import has_lengths, is_length
from landbridge.ir.prim_ops import SizeOp
from landbridge.ir.size_exprs import SizeExpr
from landbridge.ir.stages import view_prim
from landbridge.ir.types import GLOBAL, SizeAttr, shape_of
from landbridge.sizes.size import Size, of_symbol

#: The type of the operand until the number of its words is known.
EXTENTS_TYPE = MemRefType(i64, [0], memory_space=GLOBAL)


def open_extents(function: func.FuncOp) -> list[Size]:
    """Returns the Sizes that a PrimFunc depends on; none if its sizes are known before the input shapes are.

    Of Sizes that depend on lengths, which it loads, it returns the other dimensions.
    """
    found: list[Size] = []
    for size in all_sizes(function):
        if not has_lengths([size]):
            found.append(size)
        else:
            found += [of_symbol(symbol) for name, symbol in size.symbols.items() if not is_length(name)]
    return found


def all_sizes(function: func.FuncOp) -> list[Size]:
    """Returns the Sizes that a PrimFunc depends on."""
    operands = [e for a in function.body.block.args for e in shape_of(a.type)]
    view = view_prim(function)
    generics = list(view.generics())
    loops = [e for g in generics for e in g.extents]
    at = [e.value for g in generics for o in (*g.ins, *g.outs) for r in o.map.results for e in r.dfs() if _is_size(e)]
    if view.forall is not None:
        loops.append(view.forall.iterations)
    values = [op.size.data for op in function.walk() if isinstance(op, SizeOp) and isinstance(op.size, SizeAttr)]
    return [e for e in (*operands, *loops, *at, *values) if isinstance(e, Size)]


def _is_size(expr: AffineExpr) -> TypeGuard[SizeExpr]:
    return isinstance(expr, SizeExpr)


def set_word_count(operand: SSAValue, words: Collection[Size]) -> None:
    """Give the operand the type of as many words as there are."""
    Rewriter.replace_value_with_new_type(operand, MemRefType(i64, [len(words)], memory_space=GLOBAL))
