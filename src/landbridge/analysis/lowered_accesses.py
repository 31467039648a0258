"""The loads and stores of a lowered function: the buffer, the index and the number of lanes of each."""

from __future__ import annotations

from typing import NamedTuple

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from landbridge.ir.types import shape_of

_READS = frozenset((memref.LoadOp, vector.LoadOp, vector.MaskedLoadOp))
_MASKED = (vector.MaskedLoadOp, vector.MaskedStoreOp)
_VECTORS = frozenset((vector.LoadOp, vector.StoreOp, *_MASKED))
#: The position of the operand that is the buffer; the indices follow it.
_BUFFER: dict[type[Operation], int] = {
    memref.LoadOp: 0,
    vector.LoadOp: 0,
    vector.MaskedLoadOp: 0,
    memref.StoreOp: 1,
    vector.StoreOp: 1,
    vector.MaskedStoreOp: 0,
}
#: The kinds of operations that are accesses.
ACCESSES = tuple(_BUFFER)


class LoweredAccess(NamedTuple):
    """A load or store: ``op`` accesses the elements ``first`` to ``last``, both included, relative to its index.

    They lie along the last axis; the other axes are indexed as they are. ``first > last`` if a constant mask disables
    all lanes. ``element`` is the type of each element. ``mask`` is known only at run time: any of the lanes may be
    enabled, or the first ``retained`` without the first ``skipped``.
    """

    op: Operation
    buffer: SSAValue
    shape: tuple[int, ...]
    element: Attribute
    indices: tuple[SSAValue, ...]
    first: int
    last: int
    reads: bool
    mask: SSAValue | None
    retained: SSAValue | None
    skipped: SSAValue | None


def lowered_access(op: Operation) -> LoweredAccess:
    """Returns the access of ``op``, one of ACCESSES."""
    kind, operands = type(op), tuple(op.operands)
    position = _BUFFER[kind]
    buffer = operands[position]
    shape = shape_of(buffer.type)
    indices = operands[position + 1 : position + 1 + len(shape)]
    mask = operands[-2] if kind in _MASKED else None
    value = op.results[0] if kind in _READS else operands[-1 if kind is vector.MaskedStoreOp else 0]
    element = value.type.element_type if isinstance(value.type, VectorType) else value.type
    constant = _retained(mask)
    if constant is None:
        constant = 0, (_lanes(value) if kind in _VECTORS else 1) - 1
    else:
        mask = None
    retained, skipped = _between(mask)
    return LoweredAccess(op, buffer, shape, element, indices, *constant, kind in _READS, mask, retained, skipped)


def _between(mask: SSAValue | None) -> tuple[SSAValue | None, SSAValue | None]:
    """Returns the most first lanes that ``mask`` enables, and how many of these it skips; None if not known."""
    if mask is None:
        return None, None
    maker = mask.owner
    if isinstance(maker, vector.CreateMaskOp):
        return maker.operands[0], None
    if isinstance(maker, arith.AndIOp) and isinstance(differ := maker.rhs.owner, arith.XOrIOp):
        (retained, more), (skipped, _) = _between(differ.lhs), _between(differ.rhs)  # a & (a ^ b)
        if maker.lhs is differ.lhs and retained is not None and more is None:
            return retained, skipped
    return None, None


def _lanes(value: SSAValue) -> int:
    assert isinstance(value.type, VectorType)
    return int(value.type.get_shape()[-1])


def _retained(mask: SSAValue | None) -> tuple[int, int] | None:
    """Returns the first and the last lane that a constant mask enables; None for any other mask."""
    if mask is None or not isinstance(mask.owner, arith.ConstantOp):
        return None
    bits = mask.owner.value
    if not isinstance(bits, DenseIntOrFPElementsAttr):
        return None
    enabled = [lane for lane, bit in enumerate(bits.get_values()) if bit]
    return (enabled[0], enabled[-1]) if enabled else (0, -1)
