"""The ``lb`` dialect, and an xdsl context with every dialect that Landbridge prints."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import arith, bufferization, builtin, func, gpu, linalg, math, memref, scf, vector
from xdsl.ir import Dialect

from landbridge.ir import graph_ops, length_ops, memory_ops, prim_ops
from landbridge.ir.types import SizeAttr, SpaceAttr, VDeviceAttr

Landbridge = Dialect(
    "lb",
    [
        graph_ops.ConstantOp,
        graph_ops.CallOp,
        graph_ops.ViewOp,
        graph_ops.ConcatOp,
        graph_ops.PackOp,
        graph_ops.UnpackOp,
        graph_ops.ToVDeviceOp,
        graph_ops.HostCallOp,
        graph_ops.IfOp,
        graph_ops.LoopOp,
        graph_ops.YieldOp,
        length_ops.LengthOp,
        length_ops.SizedByOp,
        prim_ops.ByteDotOp,
        prim_ops.ForallOp,
        prim_ops.PadOp,
        prim_ops.PrefetchOp,
        prim_ops.OrderLoadsOp,
        prim_ops.RemFOp,
        prim_ops.SizeOp,
        prim_ops.StepsOp,
        memory_ops.AllocStorageOp,
        memory_ops.AllocTensorOp,
        memory_ops.PreparedOp,
    ],
    [VDeviceAttr, SpaceAttr, SizeAttr, memory_ops.StorageType],
)

Linalg = Dialect(
    linalg.Linalg.name,
    [prim_ops.GenericOp if op is linalg.ops.GenericOp else op for op in linalg.Linalg.operations],
    list(linalg.Linalg.attributes),
)


def context() -> Context:
    """Returns a new xdsl context with the dialects of Landbridge IR."""
    ctx = Context()
    for dialect in (
        builtin.Builtin,
        func.Func,
        gpu.GPU,
        arith.Arith,
        math.Math,
        scf.Scf,
        memref.MemRef,
        vector.Vector,
        Linalg,
        bufferization.Bufferization,
        Landbridge,
    ):
        ctx.load_dialect(dialect)
    return ctx
