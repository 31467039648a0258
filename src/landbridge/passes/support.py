"""Support: kernels that their target cannot run move to a CPU, with one warning per reason."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import func
from xdsl.ir import Operation

from landbridge.analysis.separate_rounding import rounds_separately
from landbridge.errors import FallbackWarning, PlacementError
from landbridge.executable.parts import VDevice
from landbridge.ir.graph_ops import CallOp, HostCallOp, IfOp, LoopOp
from landbridge.ir.length_ops import lengths_in
from landbridge.ir.module import IRModule
from landbridge.ir.op_attributes import node_name
from landbridge.ir.reserved_lengths import read_whole
from landbridge.ir.traversal import all_operations, operations, operations_of
from landbridge.ir.types import VDeviceAttr, vdevice_of
from landbridge.passes.lower.grid.image_counts import too_many_images
from landbridge.passes.lower.grid.supports import supports
from landbridge.passes.place.first_vdevice import swap_first
from landbridge.passes.place.mover import move
from landbridge.passes.place.spaces import match_spaces
from landbridge.passes.registry import register_pass
from landbridge.passes.rewrites import rewrite
from landbridge.reporting.warning_notes import warn
from landbridge.targets import Target
from landbridge.targets.arithmetic import arithmetic_of

#: The vdevice that is added if a program needs a CPU and has none.
HOST_NAME = "cpu"


@register_pass("support")
def support(module: IRModule) -> None:
    """Move kernels that their target cannot run, and what needs the host, to a vdevice of a CPU."""
    if (
        any(isinstance(op, IfOp | LoopOp) for op in operations(module.main.body.block))
        and not module.target_of(0).on_host
    ):
        swap_first(module, _host(module))
    prims = module.prims()
    check_image_counts(module, prims)
    reasons = _reasons(module, prims)
    if any(isinstance(op, CallOp) and lengths_in(prims[op.callee_name]) for op in reasons):
        read_whole(module)  # a kernel of the host loads no length
        reasons = _reasons(module, prims)
    if not reasons:
        return
    host = VDeviceAttr.of(_host(module))
    _warn(reasons)
    move(module, lambda op: host if op in reasons else vdevice_of(op.res[0].type))
    match_spaces(module)  # moved kernels no longer use scopes of their device


def _reasons(module: IRModule, prims: Mapping[str, func.FuncOp]) -> dict[Operation, str]:
    """Returns the operations that need the host, each with the reason."""
    found: dict[Operation, str] = {}
    for op in all_operations(module.main):
        if isinstance(op, CallOp | HostCallOp):
            reason = in_a_branch(module, op) or of_the_host(module, op) or unsupported(module, op, prims)
            if reason is not None:
                found[op] = reason
    return found


def check_image_counts(module: IRModule, prims: Mapping[str, func.FuncOp]) -> None:
    """Raises PlacementError, naming the node, for a kernel that would use more images at once than its target has.

    It includes fused kernels, which no request names: images exist only where they were requested.
    """
    for op in operations_of(module.main, CallOp):
        reason = too_many_images(prims[op.callee_name], module.target_of(_index(op)))
        if reason is not None:
            raise PlacementError(f"node {node_name(op)!r} was placed with its tensors in images: {reason}")


@rewrite("support.in_a_branch", "what is in a branch or loop runs on the CPU, which controls it")
def in_a_branch(module: IRModule, op: CallOp | HostCallOp) -> str | None:
    """Returns a reason for operations in branches and loops, which the host controls; None for others."""
    around = op.parent_op()
    if not isinstance(around, IfOp | LoopOp) or not _is_away(module, op):
        return None
    if isinstance(around, IfOp):
        return "it is in a branch, and branches are taken on the host"
    return "it is in a loop, and loops run on the host"


@rewrite("support.of_the_host", "a function of the host runs on the CPU")
def of_the_host(module: IRModule, op: CallOp | HostCallOp) -> str | None:
    """Returns a reason for host builtins, which run only there; None for others."""
    if isinstance(op, HostCallOp) and _is_away(module, op):
        return f"{op.builtin.data!r} is a function of the host"
    return None


@rewrite("support.unsupported", "a kernel that its target cannot run runs on the CPU")
def unsupported(module: IRModule, op: CallOp | HostCallOp, prims: Mapping[str, func.FuncOp]) -> str | None:
    """Returns why the target of a kernel cannot run it, or its code generator declines it; None if it can."""
    if not isinstance(op, CallOp):
        return None
    prim, target = prims[op.callee_name], module.target_of(_index(op))
    if arithmetic_of(target).free_contraction and rounds_separately(prim):
        return f"it needs a product rounded before it is added, and target {target.kind!r} has contraction=free"
    return supports(prim, target) or module.declined(prim, target)


def _index(op: CallOp | HostCallOp) -> int:
    return vdevice_of(op.res[0].type).index.data if op.res else 0


def _is_away(module: IRModule, op: CallOp | HostCallOp) -> bool:
    """Returns whether ``op`` is computed by anything but the CPU of this process."""
    return not module.target_of(_index(op)).on_host


def _host(module: IRModule) -> int:
    """Returns the number of a vdevice of a CPU; adds one for the target's own host if there is none."""
    for number in range(len(module.vdevices)):
        if module.target_of(number).on_host:
            return number
    target = next((t.host for t in module.targets if t.host is not None), None) or Target("llvm")
    names = [v.name for v in module.vdevices]
    module.targets = (*module.targets, target)
    name = next(n for n in (HOST_NAME, *(f"{HOST_NAME}_{i}" for i in range(len(names) + 1))) if n not in names)
    module.vdevices = (*module.vdevices, VDevice(name, len(module.targets) - 1))
    return len(module.vdevices) - 1


def _warn(reasons: dict[Operation, str]) -> None:
    nodes: dict[str, list[str]] = {}
    for op, reason in reasons.items():
        nodes.setdefault(reason, []).append(repr(node_name(op)))
    for reason, names in nodes.items():
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        warn(f"{', '.join(names[:3])}{more}: on the CPU, as {reason}", FallbackWarning)
