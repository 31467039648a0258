"""Completes the errors for unproved accesses: which kernel the access is in, and what its author or user can do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from landbridge.errors import AccessError, PlacementError
from landbridge.ir.graph_ops import CallOp
from landbridge.ir.module import IRModule
from landbridge.ir.op_attributes import node_name
from landbridge.ir.traversal import all_operations, operations_of
from landbridge.ir.types import shape_of
from landbridge.ir.verify_places import is_nd
from landbridge.operators import REGISTRY, Kernel
from landbridge.operators.implementations import is_built_in
from landbridge.sizes.size import dimensions_of

#: The most nodes that a message names.
_SHOWN = 6


@contextmanager
def access_errors(module: IRModule, *, generated: bool) -> Iterator[None]:
    """Add advice to the message of an AccessError that the ``with`` block raises for a kernel of ``module``.

    ``generated``: the kernels were made from a model, so that an unproved access is a bug of the compiler. Otherwise
    they are IR that the user or a plugin wrote, who can clamp the index. Raises AccessError with the extended message,
    and PlacementError where a run decides the extents of memory in rows and the indices into it.
    """
    try:
        yield
    except AccessError as error:
        if generated and (open_rows := _in_open_rows(module, error.kernel)):
            raise PlacementError(open_rows) from error
        advice = _generated(module, error.kernel) if generated else _written()
        raise AccessError(f"{error}. {advice}", error.kernel) from error


def _in_open_rows(module: IRModule, kernel: str) -> str:
    """Returns an error for a call of ``kernel`` on memory in rows whose extents a run decides; empty for none."""
    for op in all_operations(module.main):
        if isinstance(op, CallOp) and op.callee_name == kernel:
            for value in op.operands:
                if is_nd(value.type) and (names := ", ".join(dimensions_of(shape_of(value.type)))):
                    return (
                        f"node {node_name(op)!r} uses a tensor of {list(map(str, shape_of(value.type)))} in rows at "
                        f"indices that are computed when the model runs, and {names} {'are' if ',' in names else 'is'} "
                        "known then, too; place the tensor in a flat scope, or give numbers (shapes=, dims=)"
                    )
    return ""


def _written() -> str:
    return (
        "The kernel is IR that was given to compile: clamp or test the index before the access. "
        "compile(sanitize=True) leaves out the proof, and a run says where it goes wrong"
    )


def _generated(module: IRModule, kernel: str) -> str:
    calls = [op for op in operations_of(module.main, CallOp) if op.callee_name == kernel]
    nodes = list(dict.fromkeys(node_name(op) for op in calls))
    named = ", ".join(map(repr, nodes[:_SHOWN])) + (f" and {len(nodes) - _SHOWN} more" if len(nodes) > _SHOWN else "")
    origin = f" from node{'s' if len(nodes) > 1 else ''} {named}" if nodes else ""
    return (
        f"Landbridge generated this kernel{origin} of the model: this is a bug in Landbridge, not in the model. Please "
        "report it with the model, or these nodes and their shapes, the target and this message. Until it is mended, "
        f"compile(sanitize=True) makes kernels that test each access when they run instead of before{_unless_theirs()}"
    )


def _unless_theirs() -> str:
    """Returns a sentence about operators that others defined, if any are registered."""
    kernels = [each for each in REGISTRY.of_kind(Kernel) if not is_built_in(each)]
    theirs = sorted({f"{each.op_type} ({each.function.__module__})" for each in kernels})
    if not theirs:
        return ""
    return f". Where the kernel is of an operator defined elsewhere, {', '.join(theirs)}, that has to clamp its indices"
