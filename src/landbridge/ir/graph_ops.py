"""Graph-level operations on tensors with a VDevice encoding (memrefs after bufferization).

None of them computes: computation is in PrimFuncs, which ``lb.call`` runs in destination-passing style.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FlatSymbolRefAttrConstr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    attr_def,
    irdl_op_definition,
    operand_def,
    opt_attr_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsTerminator, Pure

from landbridge.ir.op_attributes import NODE
from landbridge.ir.packing import packed_shape
from landbridge.ir.plain_attributes import int_array, int_attr, int_of, ints
from landbridge.ir.segments import OPERAND_SEGMENTS, first_segment, segments
from landbridge.ir.types import AnyTensor, VDeviceAttr, dtype_of, shape_of, tensor_type, vdevice_of
from landbridge.sizes.size import Extent


@lru_cache(maxsize=4096)
def _symbol(name: str) -> SymbolRefAttr:
    return SymbolRefAttr(name)


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """Loads a constant of the module's table by symbol: ``lb.constant {symbol = @w}``."""

    name = "lb.constant"
    symbol = attr_def(FlatSymbolRefAttrConstr)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, symbol: str, ty: Attribute) -> None:
        Operation.__init__(self, attributes={"symbol": _symbol(symbol)}, result_types=[ty])

    @property
    def symbol_name(self) -> str:
        """Returns the constant's name in the module's table."""
        return self.symbol.root_reference.data


@irdl_op_definition
class CallOp(IRDLOperation):
    """Calls a PrimFunc: inputs, then destinations. On tensors each result is a written destination; on memrefs there
    are no results."""

    name = "lb.call"
    callee = attr_def(FlatSymbolRefAttrConstr)
    node = opt_attr_def(StringAttr)
    inputs = var_operand_def()
    destinations = var_operand_def()
    res = var_result_def()
    irdl_options = (AttrSizedOperandSegments(),)

    def __init__(
        self,
        callee: str,
        inputs: Sequence[SSAValue],
        destinations: Sequence[SSAValue],
        result_types: Sequence[Attribute],
        node: str = "",
    ) -> None:
        attributes: dict[str, Attribute] = {"callee": _symbol(callee)}
        if node:
            attributes[NODE] = StringAttr(node)
        attributes[OPERAND_SEGMENTS] = segments(len(inputs), len(destinations))
        Operation.__init__(self, operands=[*inputs, *destinations], result_types=result_types, attributes=attributes)

    @property
    def input_count(self) -> int:
        """Returns the number of operands that are inputs; the others are destinations."""
        return first_segment(self.attributes[OPERAND_SEGMENTS])

    @property
    def callee_name(self) -> str:
        """Returns the name of the PrimFunc."""
        callee = self.attributes["callee"]  # the accessor takes five times as long
        assert isinstance(callee, SymbolRefAttr)
        return callee.root_reference.data

    @callee_name.setter
    def callee_name(self, name: str) -> None:
        self.attributes["callee"] = _symbol(name)


@irdl_op_definition
class ViewOp(IRDLOperation):
    """Views the elements of ``source`` from element ``offset``, row-major, as another shape; no bytes move."""

    name = "lb.view"
    offset = attr_def(Attribute)
    source = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, source: SSAValue, ty: Attribute, offset: Extent = 0) -> None:
        Operation.__init__(self, operands=[source], result_types=[ty], attributes={"offset": int_attr(offset)})

    @property
    def first(self) -> int:
        """Returns the element of the source that the view begins with."""
        return int_of(self.attributes["offset"])


def viewed(value: SSAValue) -> SSAValue:
    """Returns the value that ``value`` is a view of, through any number of views."""
    while isinstance(value.owner, ViewOp):
        value = value.owner.source
    return value


@irdl_op_definition
class ConcatOp(IRDLOperation):
    """Concatenates along ``axis``; bufferization lets producers write their part in place where it can."""

    name = "lb.concat"
    axis = attr_def(IntegerAttr)
    inputs = var_operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, inputs: Sequence[SSAValue], axis: int, ty: Attribute) -> None:
        Operation.__init__(self, operands=inputs, result_types=[ty], attributes={"axis": IntegerAttr(axis, i64)})


@irdl_op_definition
class PackOp(IRDLOperation):
    """Converts to a blocked layout: cuts ``axes`` into ``tiles``, which become the innermost axes in that order.

    ``1x24x8x8`` with axes [1], tiles [16] becomes ``1x2x8x8x16``. Elements past the logical extent are unspecified: no
    kernel lets them reach a visible result.
    """

    name = "lb.pack"
    axes = attr_def(ArrayAttr[IntegerAttr])
    tiles = attr_def(ArrayAttr[IntegerAttr])
    source = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(
        self, source: SSAValue, axes: Sequence[int], tiles: Sequence[int], vdevice: VDeviceAttr | None = None
    ) -> None:
        """``vdevice``: where the result lies; None for where ``source`` does."""
        ty = source.type
        shape = packed_shape(shape_of(ty), axes, tiles)
        super().__init__(
            operands=[source],
            result_types=[tensor_type(shape, dtype_of(ty), vdevice or vdevice_of(ty))],
            attributes={"axes": int_array(axes), "tiles": int_array(tiles)},
        )


@irdl_op_definition
class UnpackOp(IRDLOperation):
    """Converts back to the logical shape, which the result type gives: the inverse of ``lb.pack``."""

    name = "lb.unpack"
    axes = attr_def(ArrayAttr[IntegerAttr])
    tiles = attr_def(ArrayAttr[IntegerAttr])
    source = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, source: SSAValue, axes: Sequence[int], tiles: Sequence[int], ty: AnyTensor) -> None:
        super().__init__(
            operands=[source],
            result_types=[ty],
            attributes={"axes": int_array(axes), "tiles": int_array(tiles)},
        )


@irdl_op_definition
class ToVDeviceOp(IRDLOperation):
    """Moves a value to another placement, by a copy, or with ``view`` as the same bytes; no other operation does."""

    name = "lb.to_vdevice"
    view = opt_attr_def(UnitAttr)
    source = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, source: SSAValue, ty: Attribute) -> None:
        super().__init__(operands=[source], result_types=[ty])


#: The parameter of a host call that names the dimensions that its results, or elements of its operands, define.
DEFINES = "defines"
#: The parameter of a host call that names the programs that it runs, of ``IRModule.bodies``; the program is cut there.
BODIES = "bodies"


@irdl_op_definition
class HostCallOp(IRDLOperation):
    """Runs a host builtin by name, destinations last as in ``lb.call``."""

    name = "lb.host_call"
    builtin = attr_def(StringAttr)
    parameters = attr_def(DictionaryAttr)
    inputs = var_operand_def()
    destinations = var_operand_def()
    res = var_result_def()
    irdl_options = (AttrSizedOperandSegments(),)

    @property
    def defines(self) -> tuple[int, ...]:
        """Returns the dimensions that are known once it has run; the program is cut there."""
        declared = self.parameters.data.get(DEFINES)
        return ints(declared) if isinstance(declared, ArrayAttr) else ()

    @property
    def bodies(self) -> tuple[str, ...]:
        """Returns the names of the programs that it runs."""
        declared = self.parameters.data.get(BODIES)
        return tuple(e.data for e in declared if isinstance(e, StringAttr)) if isinstance(declared, ArrayAttr) else ()


@irdl_op_definition
class IfOp(IRDLOperation):
    """Runs one of two regions: ``then`` when the one-byte boolean ``condition`` is not 0."""

    name = "lb.if"
    condition = operand_def()
    destinations = var_operand_def()
    res = var_result_def()
    then_region = region_def("single_block")
    else_region = region_def("single_block")

    def __init__(
        self,
        condition: SSAValue,
        result_types: Sequence[Attribute],
        then_region: Region,
        else_region: Region,
        destinations: Sequence[SSAValue] = (),
    ) -> None:
        super().__init__(
            operands=[condition, destinations],
            result_types=[result_types],
            regions=[then_region, else_region],
        )


@irdl_op_definition
class LoopOp(IRDLOperation):
    """Runs its body ``trips`` times, or as often as the int64 ``count`` says at run time.

    The block takes the ``carried`` values, then the elements of ``scanned`` along their first axis, one per iteration
    (the last first where ``back`` says so), then a destination for each row that an iteration makes. It yields the
    next carried values and the rows. The results are the last carried values, then the rows stacked along a new first
    axis, by ``back`` too. ``condition`` is the index of the carried bool that ends the loop where it is 0 before an
    iteration.

    On memrefs there are no results: ``destinations`` hold the carried values and the rows. The block takes elements
    and destinations of rows, and yields nothing.
    """

    name = "lb.loop"
    trips = attr_def(Attribute)
    back = attr_def(ArrayAttr[IntegerAttr])
    condition = opt_attr_def(IntegerAttr)
    node = opt_attr_def(StringAttr)
    count = var_operand_def()
    carried = var_operand_def()
    scanned = var_operand_def()
    destinations = var_operand_def()
    res = var_result_def()
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(),)

    def __init__(
        self,
        trips: Extent,
        values: tuple[Sequence[SSAValue], Sequence[SSAValue], Sequence[SSAValue], Sequence[SSAValue]],
        result_types: Sequence[Attribute],
        body: Region,
        back: Sequence[int],
        condition: int | None = None,
        node: str = "",
    ) -> None:
        attributes: dict[str, Attribute] = {"trips": int_attr(trips), "back": int_array(back)}
        if condition is not None:
            attributes["condition"] = IntegerAttr(condition, i64)
        if node:
            attributes[NODE] = StringAttr(node)
        super().__init__(operands=list(values), result_types=[result_types], regions=[body], attributes=attributes)

    @property
    def most_trips(self) -> int:
        """Returns the trip count; an upper bound of it where ``count`` or a condition decides."""
        return int_of(self.trips)

    @property
    def tested(self) -> int | None:
        """Returns the index of the carried value that ends the loop; None if there is no condition."""
        return None if self.condition is None else self.condition.value.data

    @property
    def rows(self) -> int:
        """Returns how many rows an iteration makes."""
        return len(ints(self.back)) - len(self.scanned)

    @property
    def sliced(self) -> list[SSAValue]:
        """Return, on memrefs, the value that each argument of the body is a slice of."""
        return [*self.scanned, *self.destinations[len(self.destinations) - self.rows :]]


def graphs_in(op: Operation) -> Sequence[Region]:
    """Returns the regions of ``op`` that are graphs: branches, and the body of a loop."""
    return op.regions if isinstance(op, IfOp | LoopOp) else ()


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Yields the values of a branch of ``lb.if``, or of an iteration of ``lb.loop``."""

    name = "lb.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator())

    def __init__(self, values: Sequence[SSAValue]) -> None:
        super().__init__(operands=[values])
