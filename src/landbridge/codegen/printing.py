"""The shared parts of the printers of lowered functions: dispatch by operation, blocks, and reading of operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from xdsl.dialects import arith, math, scf
from xdsl.dialects.arith import CMPF_COMPARISON_OPERATIONS, CMPI_COMPARISON_OPERATIONS, FastMathFlagsAttr
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    SymbolRefAttr,
    VectorType,
)
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Block, Operation, SSAValue

from landbridge.errors import CodegenError
from landbridge.identity_map import IdentityMap

_T = TypeVar("_T")

#: The functions of the C library, by its names.
FUNCTIONS: dict[type[Operation], str] = {
    math.AcosOp: "acos", math.AcoshOp: "acosh", math.AsinOp: "asin", math.AsinhOp: "asinh", math.AtanOp: "atan",
    math.Atan2Op: "atan2", math.AtanhOp: "atanh", math.CbrtOp: "cbrt", math.CosOp: "cos", math.CoshOp: "cosh",
    math.ErfOp: "erf", math.ExpOp: "exp", math.Exp2Op: "exp2", math.ExpM1Op: "expm1", math.LogOp: "log",
    math.Log10Op: "log10", math.Log1pOp: "log1p", math.Log2Op: "log2", math.PowFOp: "pow", math.SinOp: "sin",
    math.SinhOp: "sinh", math.TanOp: "tan", math.TanhOp: "tanh",
}  # fmt: skip
#: Those that every processor has instructions for; ``rint`` is to even under the default rounding mode.
INSTRUCTIONS: dict[type[Operation], str] = {
    math.AbsFOp: "fabs", math.CeilOp: "ceil", math.CopySignOp: "copysign", math.FloorOp: "floor",
    math.RoundEvenOp: "rint", math.RoundOp: "round", math.SqrtOp: "sqrt", math.TruncOp: "trunc",
}  # fmt: skip


class Dispatcher:
    """Prints operations in order, each by the printer that its class has. ``form`` says in errors what is printed."""

    form: str

    def __init__(self, printers: Mapping[type[Operation], Callable[[Any, Operation], None]]) -> None:
        self._printers = printers

    def region(self, ops: Iterable[Operation]) -> None:
        """Prints ``ops``; raises CodegenError for one that has no printer."""
        for op in ops:
            printer = self._printers.get(type(op))
            if printer is None:
                raise CodegenError(
                    f"operation {op.name!r} has no {self.form} form; lower it first. Known: "
                    + ", ".join(sorted(c.name for c in self._printers))
                )
            printer(self, op)

    def nested(self, block: Block) -> Sequence[SSAValue]:
        """Prints the only block of an operation's region; the operands of its terminator."""
        *ops, last = block.ops
        self.region(ops)
        if not isinstance(last, scf.YieldOp | scf.ConditionOp):
            raise CodegenError(f"a region ends with {last.name!r}; legal: scf.yield, scf.condition")
        return tuple(last.operands)


def by_identity(make: Callable[[Attribute], _T]) -> Callable[[Attribute], _T]:
    """Caches ``make`` by type object: most equal types are one object, and hashing a vector type walks it."""
    known: IdentityMap[Attribute, _T] = IdentityMap()

    def created(attr: Attribute) -> _T:
        found = known.get(attr)
        if found is None:
            found = known[attr] = make(attr)
        return found

    return created


def constant_values(op: Operation, form: str) -> Sequence[float | int]:
    """Returns what ``arith.constant`` holds: one value, if it is a scalar or all lanes are equal, else that of each
    lane.
    """
    value = op.properties["value"]
    if isinstance(value, IntegerAttr | FloatAttr):
        return (value.value.data,)
    if not isinstance(value, DenseIntOrFPElementsAttr):
        raise CodegenError(f"constant {value} has no {form} form; legal: integers, floats and dense vectors of them")
    values: Sequence[float | int] = value.get_values()
    return values[:1] if value.is_splat() else values


def predicate(op: Operation) -> str:
    """Returns the name of the predicate of ``arith.cmpi`` or ``arith.cmpf``."""
    attr = op.properties["predicate"]
    assert isinstance(attr, IntegerAttr)
    names = CMPF_COMPARISON_OPERATIONS if isinstance(op, arith.CmpfOp) else CMPI_COMPARISON_OPERATIONS
    return names[attr.value.data]


def allows(op: Operation, flag: FastMathFlag) -> bool:
    """Returns whether ``op`` carries a fast-math flag."""
    attr = op.properties.get("fastmath")
    return isinstance(attr, FastMathFlagsAttr) and flag in attr.data


def callee(op: Operation) -> str:
    """Returns the name of the function that ``func.call`` calls, which returns one value at most."""
    attr = op.properties["callee"]
    assert isinstance(attr, SymbolRefAttr)
    name = attr.root_reference.data
    if len(op.results) > 1:
        raise CodegenError(f"call of {name!r}: at most one result is supported")
    return name


def returned(op: Operation) -> SSAValue | None:
    """Returns what ``func.return`` returns, one value at most."""
    if len(op.operands) > 1:
        raise CodegenError("a function returns at most one value; write the others through memrefs")
    return op.operands[0] if op.operands else None


def broadcast_vector(op: Operation) -> SSAValue | None:
    """Returns the operand of ``vector.broadcast`` where it is the result already; None where it is a scalar."""
    source, result = op.operands[0], op.results[0]
    if not isinstance(source.type, VectorType):
        return None
    if source.type != result.type:
        raise CodegenError(f"vector.broadcast of {source.type} to {result.type}; legal: a scalar, or the same type")
    return source


def lane_position(op: Operation, dynamic: int) -> int | SSAValue:
    """Returns the lane that ``vector.extract`` or ``vector.insert`` names; ``dynamic`` is where its operand would
    be.
    """
    static = op.properties["static_position"]
    assert isinstance(static, DenseArrayBase)
    values = static.get_values()
    if len(values) != 1:
        raise CodegenError(f"{op.name} at {list(values)}: only one lane of a 1-D vector can be taken")
    return op.operands[dynamic] if values[0] == DYNAMIC_INDEX else int(values[0])


def axis(op: Operation) -> int:
    """Returns the number of the dimension of ``gpu.block_id`` and the like."""
    return "xyz".index(op.properties["dimension"].data.value)  # type: ignore[attr-defined]
