"""Lengths: dimensions that lie in memory of a device, so that the host knows only their bounds.

Such a dimension is the one element of a tensor of integers, clamped to its bounds. Its buffers have the capacity that
the larger bound gives, and kernels load it to know how much of them to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, IndexType, StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, attr_def, irdl_op_definition, operand_def, result_def, traits_def, var_operand_def
from xdsl.traits import Pure

from landbridge.ir.plain_attributes import string_array
from landbridge.ir.types import SizeAttr
from landbridge.sizes.replaced import with_atoms
from landbridge.sizes.size import LARGEST_EXTENT, Extent, Size, clamped, dimension, never_below
from landbridge.sizes.terms import Clamped, Symbol, all_atoms

#: Prefix of their names.
_LENGTH = "lb_length_"


def is_length(name: str) -> bool:
    """Returns whether a dimension is a length."""
    return name.startswith(_LENGTH)


def new_length(number: int, low: int, high: int, expected: int) -> Extent:
    """Returns length ``number``, from ``low`` to ``high``: an integer of any size, clamped to these.

    The bounds are not those of the dimension, so that no comparison of sizes narrows it: no run could check that.
    Kernels are made for the ``expected`` length.
    """
    anything = dimension(f"{_LENGTH}{number}", -LARGEST_EXTENT, expected=min(expected, high))
    return clamped(anything, low, high)


def has_lengths(extents: Iterable[Extent]) -> bool:
    """Returns whether one of ``extents`` depends on a length."""
    return any(is_length(name) for extent in extents if isinstance(extent, Size) for name in extent.symbols)


def reserved(extent: Extent) -> Extent:
    """Returns ``extent`` where each length has its larger bound."""
    if not has_lengths([extent]):
        return extent
    assert isinstance(extent, Size)
    lengths = [
        atom
        for atom in all_atoms(extent.terms)
        if isinstance(atom, Clamped) and has_lengths([Size(atom.terms)]) and atom.high is not None
    ]
    whole = with_atoms(extent.terms, {atom: atom.high for atom in lengths if atom.high is not None})
    return never_below(whole) if has_lengths([whole]) else whole


@irdl_op_definition
class LengthOp(IRDLOperation):
    """Says which tensor of one integer a length is: ``lb.length(%total) {size = #lb.size<[lb_length_0]>}``.

    It is in @main until the pass ``lengths``, then in the PrimFuncs whose sizes depend on the length.
    """

    name = "lb.length"
    value = operand_def()
    size = attr_def(SizeAttr)

    def __init__(self, value: SSAValue, size: Size) -> None:
        super().__init__(operands=[value], attributes={"size": SizeAttr(size)})

    @property
    def dimension(self) -> Symbol:
        """Returns the dimension that the length is."""
        (symbol,) = self.size.data.symbols.values()
        return symbol


@irdl_op_definition
class SizedByOp(IRDLOperation):
    """The index ``size`` where its dimensions have the ``values``, in the order of ``names``.

    ``lb.sized_by(%n) {names = ["lb_length_0"], size = #lb.size<[lb_length_0/4]>} : (index) -> index``. Proofs read the
    Size; after them, ``passes/lower/lengths.py`` replaces the operation by arithmetic.
    """

    name = "lb.sized_by"
    values = var_operand_def()
    names = attr_def(ArrayAttr)
    size = attr_def(SizeAttr)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, size: Size, values: Mapping[str, SSAValue]) -> None:
        super().__init__(
            operands=[list(values.values())],
            attributes={"names": string_array(list(values)), "size": SizeAttr(size)},
            result_types=[IndexType()],
        )

    @property
    def by_name(self) -> dict[str, SSAValue]:
        """Returns the values of the dimensions, by name."""
        names = [name.data for name in self.names if isinstance(name, StringAttr)]
        return dict(zip(names, self.values, strict=True))


def lengths_in(function: func.FuncOp) -> dict[str, SSAValue]:
    """Returns the operands of a PrimFunc that are lengths, by dimension."""
    return {op.dimension.name: op.value for op in function.body.block.ops if isinstance(op, LengthOp)}
