"""Refuses requested placements that kernels cannot use, before anything is compiled for them."""

from __future__ import annotations

from xdsl.ir import BlockArgument, Operation, SSAValue

from landbridge.errors import PlacementError
from landbridge.ir.graph_ops import CallOp, ConstantOp, HostCallOp, IfOp, LoopOp, ToVDeviceOp, ViewOp
from landbridge.ir.main_attributes import io_names
from landbridge.ir.module import IRModule
from landbridge.ir.op_attributes import node_name
from landbridge.ir.traversal import all_operations, operations_of
from landbridge.ir.types import vdevice_of
from landbridge.memory_kind import GLOBAL_SCOPE, MemoryKind
from landbridge.passes.place.requests import Requests
from landbridge.targets import Target


def check_usable(module: IRModule, requests: Requests) -> None:
    """Raises PlacementError where a kernel would get memory that it cannot address, or a placement would be ignored.

    Host code addresses only host memory; a grid addresses no scopes of rows. In a branch everything is in ordinary
    memory.
    """
    for op in all_operations(module.main):
        if isinstance(op, CallOp | HostCallOp):
            _check_branch(op, requests)
        if isinstance(op, CallOp):
            for value in (*op.inputs, *op.res):
                _check_addressable(module, op, value)
    check_rows_usable(module)


def check_rows_usable(module: IRModule) -> None:
    """Raises PlacementError where a kernel of a grid would get memory in rows that is no image."""
    for op in operations_of(module.main, CallOp):
        for value in (*op.inputs, *op.res):
            _check_no_rows(module, op, value)


def _check_branch(op: CallOp | HostCallOp, requests: Requests) -> None:
    outer, scope = op.parent_op(), requests.of_node(op).scope.data
    if isinstance(outer, IfOp | LoopOp) and scope != GLOBAL_SCOPE:
        where = "a branch of an If" if isinstance(outer, IfOp) else "a loop"
        raise PlacementError(
            f"node {node_name(op)!r} is in {where} and cannot write scope {scope!r}; legal: "
            f"{GLOBAL_SCOPE!r}; place the nodes that read what it gives instead"
        )


def _check_addressable(module: IRModule, op: CallOp, value: SSAValue) -> None:
    vdevice = vdevice_of(value.type)
    target, scope = module.target_of(vdevice.index.data), vdevice.scope.data
    if scope == GLOBAL_SCOPE or not target.on_host or not target.memory:
        return
    kind = target.memory_kind(scope)
    if not _is_addressable(kind):
        raise PlacementError(
            f"node {node_name(op)!r} {'writes' if value in op.res else 'reads'} {_tensor(module, value)} in scope "
            f"{scope!r}, which kernels of target {target.kind!r} cannot use in place: its host_access is "
            f"{kind.host_access!r} and coherent {kind.coherent}; legal: {_legal(target)}"
        )


def _check_no_rows(module: IRModule, op: CallOp, value: SSAValue) -> None:
    vdevice = vdevice_of(value.type)
    target, separators = module.target_of(vdevice.index.data), vdevice.axis_separators
    if target.form == "grid" and len(separators) not in (0, 2):  # two dimensions make an image
        raise PlacementError(
            f"node {node_name(op)!r} {'writes' if value in op.res else 'reads'} {_tensor(module, value)} in scope "
            f"{vdevice.scope.data!r} with axis separators {list(separators)}, in rows; kernels of target "
            f"{target.kind!r}, grids of workgroups, reach flat memory and images only; legal: a scope without axis "
            "separators"
        )


def _is_addressable(kind: MemoryKind) -> bool:
    """Returns whether host code can use the memory as its own."""
    return kind.host_access == "read_write" and kind.coherent


def _legal(target: Target) -> str:
    return ", ".join(repr(kind.scope) for kind in target.memory if _is_addressable(kind)) or "none"


def _tensor(module: IRModule, value: SSAValue) -> str:
    """Returns the model's name of ``value``."""
    while isinstance(value.owner, ToVDeviceOp | ViewOp):
        value = value.owner.source
    if isinstance(value, BlockArgument):
        return f"input {io_names(module.main)[0][value.index]!r}"
    if isinstance(value.owner, ConstantOp):
        return f"weight {value.owner.symbol_name!r}"
    assert isinstance(value.owner, Operation)
    return f"tensor {node_name(value.owner)!r}"
