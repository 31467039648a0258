"""Gives sizes that depend on lengths the capacity, where kernels do not load them."""

from __future__ import annotations

from xdsl.rewriter import Rewriter

from landbridge.ir.length_ops import LengthOp, reserved
from landbridge.ir.module import IRModule
from landbridge.ir.replaced_sizes import SizeReplacer, replace_sizes
from landbridge.ir.traversal import operations_of


def read_whole(module: IRModule) -> None:
    """Let all of ``module`` compute the whole capacity: no length is left."""
    ops = operations_of(module.op, LengthOp)
    for op in ops:
        Rewriter.erase_op(op)
    if ops:
        replace_sizes(module, reserved)


def reserve_in_main(module: IRModule) -> None:
    """Give the buffers of ``@main`` the capacity; PrimFuncs keep their lengths."""
    SizeReplacer(reserved).operations([module.main])
