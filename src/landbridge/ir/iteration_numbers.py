"""Loop counters as dimensions: kernels of a loop's body read them as tensors."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.builder import Builder
from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from landbridge.errors import UndecidedSizeError
from landbridge.ir.prim_ops import SizeOp
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.traversal import operations_of
from landbridge.ir.types import SizeAttr, dtype_of, memref_type, shape_of, vdevice_of
from landbridge.sizes.question import Question
from landbridge.sizes.size import Size
from landbridge.sizes.terms import AboveZero, Atom, Clamped, Floor, Symbol, Terms, as_constant, of_atom, symbols

#: Prefix of their names; no identifier begins with it.
_ITERATION = "iteration "


def iteration_name(which: str) -> str:
    """Returns the name of the dimension for an iteration number."""
    return _ITERATION + which


def is_iteration(name: str) -> bool:
    """Returns whether a dimension is an iteration number."""
    return name.startswith(_ITERATION)


def asks_of_iterations(error: UndecidedSizeError) -> bool:
    """Returns whether the undecided comparison depends on an iteration number; no range of sizes decides such a one."""
    return isinstance(error.question, Question) and any(map(is_iteration, symbols(error.question.difference)))


def read_iterations(function: func.FuncOp, inputs: int, iterations: Mapping[str, SSAValue]) -> list[SSAValue]:
    """Make the PrimFunc ``function`` compute its sizes from ``iterations``; return the tensors that it reads for that.

    ``iterations`` maps a dimension's name to a tensor of one int64. Each one that the function uses becomes an
    argument after its ``inputs``.
    """
    size_ops = [(op, op.size.data) for op in operations_of(function, SizeOp) if isinstance(op.size, SizeAttr)]
    used_names = {name for _, size in size_ops for name in size.symbols}
    used = {name: value for name, value in iterations.items() if name in used_names}
    if not used:
        return []
    block = function.body.block
    arguments: dict[str, SSAValue] = {}
    for number, (name, value) in enumerate(used.items(), inputs):
        arguments[name] = block.insert_arg(_memref_of(value), number)
    types = FunctionType.from_lists(list(block.arg_types), list(function.function_type.outputs))
    function.properties["function_type"] = types
    for op, size in size_ops:
        if not arguments.keys().isdisjoint(size.symbols):
            s = ScalarBuilder(Builder(InsertPoint.before(op)))
            found = _Computed(s, arguments).terms(size.terms)
            Rewriter.replace_op(op, [], [found.ssa])
    return list(used.values())


def _memref_of(value: SSAValue) -> Attribute:
    return memref_type(shape_of(value.type), dtype_of(value.type), vdevice_of(value.type).space)


class _Computed:
    """Computes terms as int64, where ``iterations`` are memrefs."""

    def __init__(self, s: ScalarBuilder, iterations: Mapping[str, SSAValue]) -> None:
        self._s, self._iterations = s, iterations

    def terms(self, terms: Terms) -> Value:
        number = as_constant(terms)
        if number is not None:
            return self._s.const(number, "int64")
        if self._iterations.keys().isdisjoint(symbols(terms)):
            return self._s.const(Size(terms), "int64")
        total: Value | None = None
        for product, coefficient in terms:
            found = self._s.const(coefficient, "int64")
            for atom, power in product:
                for _ in range(power):
                    found = found * self._atom(atom)
            total = found if total is None else total + found
        assert total is not None
        return total

    def _atom(self, atom: Atom) -> Value:
        s = self._s
        match atom:
            case Symbol():
                if atom.name not in self._iterations:
                    return s.const(Size(of_atom(atom)), "int64")
                memref = self._iterations[atom.name]
                return s.load(memref, [0] * len(shape_of(memref.type)), "int64")
            case Floor():
                return s.binary("floordiv", self.terms(atom.numerator), self.terms(atom.divisor))
            case AboveZero():
                return s.maximum(self.terms(atom.terms), 0)
            case Clamped():
                value = self.terms(atom.terms)
                return s.maximum(value if atom.high is None else s.minimum(value, atom.high), atom.low)
