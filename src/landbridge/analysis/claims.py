"""Destination claims: which produced values can be written straight into a larger buffer or onto a shared one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from xdsl.ir import Block, Operation, OpResult, SSAValue

from landbridge.analysis.offsets import has_one_tensor_per_space, may_begin
from landbridge.analysis.overwriting import overwritable
from landbridge.ir.graph_ops import (
    CallOp,
    ConcatOp,
    HostCallOp,
    IfOp,
    LoopOp,
    PackOp,
    ToVDeviceOp,
    UnpackOp,
    ViewOp,
    YieldOp,
    viewed,
)
from landbridge.ir.module import IRModule
from landbridge.ir.traversal import operations
from landbridge.ir.types import element_count, shape_of, vdevice_of
from landbridge.records import record

_PRODUCERS = (CallOp, HostCallOp, IfOp, LoopOp, ConcatOp, PackOp, UnpackOp, ToVDeviceOp)


@record(frozen=True)
class Claim:
    """A value is produced as part of ``whole`` from element ``first`` on.

    ``whole`` is an output's memref, another produced value, or a loop's destination of a row.
    """

    whole: SSAValue
    first: int


@record(frozen=True)
class Part:
    """An input of a concatenation: its first element in a row of the result, and whether it may be produced there.

    That needs one contiguous piece at an offset where a kernel's argument may begin.
    """

    value: SSAValue
    first: int
    in_place: bool


class Claims:
    """The claims of the graph ``block``; the first claim on a value wins, and the outputs' come first."""

    def __init__(
        self, module: IRModule, block: Block, returned: Sequence[SSAValue], destinations: Sequence[SSAValue]
    ) -> None:
        self._module = module
        self._claims: dict[SSAValue, Claim] = {}
        #: Calls that write a result onto one of their inputs.
        self.in_place: set[Operation] = set()
        for value, destination in zip(returned, destinations, strict=True):
            self._claim(value, block, Claim(destination, 0))
        self._claim_parts(block)

    def of(self, produced_value: SSAValue) -> Claim | None:
        """Returns the claim on a produced value, if there is one."""
        return self._claims.get(produced_value)

    def holds(self, value: SSAValue, claim: Claim) -> bool:
        """Returns whether ``value`` (or what it is a view of) is produced as ``claim`` says."""
        root = produced(value)
        return root is not None and self._claims.get(root) == claim

    def _claim(self, value: SSAValue, block: Block, claim: Claim) -> None:
        root = produced(value)
        # A value of an outer block is alive on both sides of the branch: it retains a buffer of its own.
        if root is not None and root.op.parent is block:
            self._claims.setdefault(root, claim)

    def _claim_parts(self, block: Block) -> None:
        for op in operations(block):
            if isinstance(op, IfOp):
                for region in (op.then_region, op.else_region):
                    for value, result in zip(cast(YieldOp, region.block.last_op).values, op.res, strict=True):
                        self._claim(value, region.block, Claim(result, 0))
                    self._claim_parts(region.block)
            elif isinstance(op, LoopOp):
                self._claim_iterations(op, block)
            elif isinstance(op, ConcatOp):
                for part in parts(self._module, op):
                    if part.in_place:
                        self._claim(part.value, block, Claim(op.result, part.first))

    def _claim_iterations(self, op: LoopOp, block: Block) -> None:
        """Claim one buffer for each carried value of a loop, and the destinations of its rows."""
        inner = op.body.block
        count = len(op.carried)
        for value, result in zip(op.carried, op.res, strict=False):
            if _has_one_use(value):
                self._claim(value, block, Claim(result, 0))
        yielded = cast(YieldOp, inner.last_op).values
        for value, argument, result in zip(yielded, inner.args, op.res[:count], strict=False):
            if self._is_replaced(inner, argument, value):
                self._claim(value, inner, Claim(result, 0))
        row_destinations = inner.args[len(inner.args) - op.rows :]
        for value, destination in zip(yielded[count:], row_destinations, strict=True):
            self._claim(value, inner, Claim(destination, 0))
        self._claim_parts(inner)

    def _is_replaced(self, block: Block, argument: SSAValue, value: SSAValue) -> bool:
        """Returns whether an iteration may produce ``value`` in the memory of its argument ``argument``.

        That holds if nothing in ``block`` uses the argument from then on, or if the call writes ``value`` onto it.
        """
        root = produced(value)
        if root is None or root in self._claims or root.op in self.in_place:
            return False
        if root.op.parent is not block or not isinstance(root.op, CallOp | HostCallOp):
            return False  # others begin to write before they have read all inputs
        users = {block.find_ancestor_op_in_block(user) for user in _users(argument)}
        if root.op in users and isinstance(root.op, CallOp) and overwrites(self._module, root.op, root, argument):
            users.discard(root.op)
            self.in_place.add(root.op)
        return all(user is not None and user.is_before_in_block(root.op) for user in users)


def overwrites(module: IRModule, op: CallOp, value: OpResult, argument: SSAValue) -> bool:
    """Returns whether the kernel of ``op`` may write ``value`` onto ``argument``, which it reads."""
    if has_one_tensor_per_space(module, vdevice_of(value.type)):
        return False
    at = [number for number, read in enumerate(op.inputs) if viewed(read) is argument]
    wanted = [(at[0], value.index)] if len(at) == 1 else []
    return any(pair in wanted for pair in overwritable(module.prims()[op.callee_name], len(op.res)))


def _users(value: SSAValue) -> Iterator[Operation]:
    """Yields the operations that read ``value``, or a view of it."""
    for use in value.uses:
        if isinstance(use.operation, ViewOp):
            yield from _users(use.operation.result)
        else:
            yield use.operation


def _has_one_use(value: SSAValue) -> bool:
    """Returns whether nothing else reads ``value``, or what it is a view of."""
    while value.has_one_use():
        if not isinstance(value.owner, ViewOp | ToVDeviceOp):
            return True
        value = value.owner.source
    return False


def is_view(op: ViewOp | ToVDeviceOp) -> bool:
    """Returns whether the result of ``op`` aliases its operand."""
    return isinstance(op, ViewOp) or op.view is not None


def produced(value: SSAValue) -> OpResult | None:
    """Returns the produced value that ``value`` is, through views of all of it; None for anything else."""
    while isinstance(value.owner, ViewOp | ToVDeviceOp) and is_view(value.owner):
        source = value.owner.source
        if element_count(shape_of(source.type)) != element_count(shape_of(value.type)):
            return None
        value = source
    return value if isinstance(value, OpResult) and isinstance(value.owner, _PRODUCERS) else None


def parts(module: IRModule, op: ConcatOp) -> list[Part]:
    """Returns the inputs of a concatenation, in order."""
    axis, shape = op.axis.value.data, shape_of(op.result.type)
    inner = element_count(shape[axis + 1 :])
    contiguous = element_count(shape[:axis]) == 1
    found, first = [], 0
    for value in op.inputs:
        in_place = contiguous and may_begin(module, op.result, first) and may_begin(module, value, first)
        found.append(Part(value, first, in_place))
        first += shape_of(value.type)[axis] * inner
    return found
