"""Where results are wanted: which produced values can be written straight into something larger or shared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.ir import Block, OpResult, SSAValue

from landbridge.analysis.offsets import may_begin
from landbridge.ir.graph_ops import CallOp, ConcatOp, HostCallOp, IfOp, PackOp, ToVDeviceOp, UnpackOp, ViewOp, YieldOp
from landbridge.ir.module import IRModule
from landbridge.ir.types import element_count, shape_of

_PRODUCERS = (CallOp, HostCallOp, IfOp, ConcatOp, PackOp, UnpackOp, ToVDeviceOp)


@dataclass(frozen=True)
class Claim:
    """A value is produced as part of ``whole`` (an output's memref, or another produced value), from element
    ``first`` on."""

    whole: SSAValue
    first: int


@dataclass(frozen=True)
class Part:
    """An input of a concatenation: its first element in a row of the result, and whether it may be produced there:
    in one piece, where a kernel's argument may begin."""

    value: SSAValue
    first: int
    in_place: bool


class Claims:
    """Who writes where in the graph ``block``; the first claim on a value wins, the outputs' come first."""

    def __init__(
        self, module: IRModule, block: Block, returned: Sequence[SSAValue], destinations: Sequence[SSAValue]
    ) -> None:
        self._module = module
        self._claims: dict[SSAValue, Claim] = {}
        for value, destination in zip(returned, destinations, strict=True):
            self._claim(value, block, Claim(destination, 0))
        self._claim_parts(block)

    def of(self, produced_value: SSAValue) -> Claim | None:
        """The claim on a produced value, if there is one."""
        return self._claims.get(produced_value)

    def holds(self, value: SSAValue, claim: Claim) -> bool:
        """Whether ``value`` (or what it is a view of) is produced as ``claim`` says."""
        root = produced(value)
        return root is not None and self._claims.get(root) == claim

    def _claim(self, value: SSAValue, block: Block, claim: Claim) -> None:
        root = produced(value)
        # A value of an outer block is alive on both sides of the branch: it keeps a place of its own.
        if root is not None and root.op.parent is block:
            self._claims.setdefault(root, claim)

    def _claim_parts(self, block: Block) -> None:
        for op in block.ops:
            if isinstance(op, IfOp):
                for region in (op.then_region, op.else_region):
                    for value, result in zip(cast(YieldOp, region.block.last_op).values, op.res, strict=True):
                        self._claim(value, region.block, Claim(result, 0))
                    self._claim_parts(region.block)
            elif isinstance(op, ConcatOp):
                for part in parts(self._module, op):
                    if part.in_place:
                        self._claim(part.value, block, Claim(op.result, part.first))


def is_view(op: ViewOp | ToVDeviceOp) -> bool:
    """Whether the result of ``op`` is bytes of its operand."""
    return isinstance(op, ViewOp) or op.view is not None


def produced(value: SSAValue) -> OpResult | None:
    """The produced value that ``value`` is, through views of all of it; None for anything else."""
    while isinstance(value.owner, ViewOp | ToVDeviceOp) and is_view(value.owner):
        source = value.owner.source
        if element_count(shape_of(source.type)) != element_count(shape_of(value.type)):
            return None
        value = source
    return value if isinstance(value, OpResult) and isinstance(value.owner, _PRODUCERS) else None


def parts(module: IRModule, op: ConcatOp) -> list[Part]:
    """The inputs of a concatenation, in order."""
    axis, shape = op.axis.value.data, shape_of(op.result.type)
    inner = element_count(shape[axis + 1 :])
    contiguous = element_count(shape[:axis]) == 1
    found, first = [], 0
    for value in op.inputs:
        in_place = contiguous and may_begin(module, op.result, first) and may_begin(module, value, first)
        found.append(Part(value, first, in_place))
        first += shape_of(value.type)[axis] * inner
    return found
