"""Lets lowered kernels that differ only in values share one code: the values become words that each call passes.

Such values are extents and strides, as indices, and constants that a body adds or multiplies with. All accesses were
proved before: each call runs the code that was proved for it, with its values read from its words.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Sequence
from typing import TypeAlias, cast

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    Float32Type,
    FloatAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    MemRefType,
    VectorType,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from landbridge.ir.kernel_attributes import (
    LOOP_NEST,
    SCHEDULE,
    SIZES,
    TASKS,
    WEIGHED,
    is_checked,
    schedule_of,
    set_sizes,
    sizes_of,
    target_number,
    task_count,
)
from landbridge.ir.types import GLOBAL, SpaceAttr, element_count, shape_of
from landbridge.passes.lower.call_words import CallWords, WordTerm, terms
from landbridge.records import record
from landbridge.sizes.size import Size, least

#: Attributes of a function that its code does not depend on.
_FACTS_OF_CALLS = frozenset((TASKS, SIZES, SCHEDULE, WEIGHED, LOOP_NEST))
#: Operations that are not faster with a constant operand. A minimum is: it matters that its operand is not a NaN.
_SUMS = (arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp)
#: Commutative operations.
_COMMUTES = (arith.AddfOp, arith.MulfOp, arith.AddiOp, arith.MuliOp)
#: Operations that are much slower if their operand is known only at run time.
_QUOTIENTS = (arith.DivUIOp, arith.DivSIOp, arith.FloorDivSIOp, arith.CeilDivSIOp, arith.RemUIOp, arith.RemSIOp)
#: Kinds of operations whose index operands stay constants.
_Kinds: TypeAlias = tuple[type[Operation], ...]


@record(frozen=True)
class Variant:
    """A PrimFunc that uses shared code: the function it calls, its tasks and words, and the descriptions of its
    schedule.
    """

    function: str
    tasks: int
    words: tuple[int, ...]
    schedule: str
    weighed: tuple[str, ...]
    loops: str


@record(frozen=True)
class _Number:
    """Operand ``index`` of ``op`` is the constant ``value``; for a float, its bits."""

    op: Operation
    index: int
    value: int

    @property
    def is_index(self) -> bool:
        return isinstance(self.op.operands[self.index].type, IndexType)


def share_code(lowered: Sequence[func.FuncOp], on_host: Sequence[bool]) -> dict[str, Variant]:
    """Keep one of each group of kernels in ``lowered`` that differ only in values, and erase the others; returns the
    calls by name.

    ``on_host`` says for each target whether its code runs on the CPU of the process, which is where calls can pass
    words.
    """
    rough: dict[Hashable, list[func.FuncOp]] = {}
    for function in lowered if len(lowered) > 1 else ():
        if on_host[target_number(function)] and _may_share(function):
            rough.setdefault(_outline(function), []).append(function)
    variants: dict[str, Variant] = {}
    for similar in rough.values():
        if len(similar) > 1:
            forms: dict[Hashable, list[tuple[func.FuncOp, list[_Number]]]] = {}
            for function in similar:
                scalars: list[_Number] = []
                forms.setdefault(_form(function, scalars), []).append((function, scalars))
            for members in forms.values():
                if len(members) > 1:
                    variants |= _shared(members)
    return variants


def _may_share(function: func.FuncOp) -> bool:
    kinds = [a.type for a in function.body.block.args][-2:]
    return len(kinds) == 2 and all(isinstance(k, IndexType) for k in kinds) and not is_checked(function)


def _outline(function: func.FuncOp) -> Hashable:
    """Returns a key that is equal for functions of one form, and fast to compute."""
    names: list[str] = []
    _append_names(function.body.block, names)
    return target_number(function), tuple(names)


def _append_names(block: Block, names: list[str]) -> None:
    op = block.first_op
    while op is not None:  # walk() would resume a generator at each level of nesting
        if type(op) is not arith.ConstantOp:
            names.append(op.name)
            for region in op.regions:
                for inner in region.blocks:
                    _append_names(inner, names)
        op = op.next_op


# The form of a function ---------------------------------------------------------------------------------------------


def _words_of(function: func.FuncOp) -> SSAValue | None:
    """Returns the operand that holds Sizes; None if there is none."""
    return function.body.block.args[-3] if sizes_of(function) else None


def _form(function: func.FuncOp, scalars: list[_Number]) -> Hashable:
    """Returns a key for the code of ``function`` without its values, which are appended to ``scalars`` in order."""
    attributes = tuple((k, v) for k, v in function.attributes.items() if k not in _FACTS_OF_CALLS)
    return attributes, _Former(function, scalars).block(function.body.block, ())


class _Former:
    def __init__(self, function: func.FuncOp, scalars: list[_Number]) -> None:
        self._words, self._sizes = _words_of(function), sizes_of(function)
        self._values = scalars
        self._known: dict[SSAValue, int] = {}

    def block(self, block: Block, fixed: _Kinds) -> Hashable:
        arguments = [a for a in block.args if a is not self._words]
        for argument in arguments:
            self._known[argument] = len(self._known)
        rows = [self._operation(op, fixed) for op in block.ops if not self._is_number(op)]
        return tuple(kind_of_operand(a.type) for a in arguments), tuple(rows)

    def _operation(self, op: Operation, fixed: _Kinds) -> Hashable:
        kind = type(op)  # ten times as fast as isinstance with classes that have abstract bases
        if kind is scf.ForOp:
            fixed = _fixed_in(cast(scf.ForOp, op))
        operands = tuple(self._operand(op, i, v, fixed) for i, v in enumerate(op.operands))
        if kind in _COMMUTES:  # computed operands first, in the order of their computation, then constants in theirs
            operands = tuple(sorted(operands, key=lambda each: each if isinstance(each, int) else len(self._known)))
        regions = tuple(self.block(b, fixed) for r in op.regions for b in r.blocks)
        for result in op.results:
            self._known[result] = len(self._known)
        kinds = tuple(r.type for r in op.results)
        return op.name, operands, kinds, tuple(op.properties.items()), tuple(op.attributes.items()), regions

    def _operand(self, op: Operation, index: int, value: SSAValue, fixed: _Kinds) -> Hashable:
        if (known := self._known.get(value)) is not None:
            return known
        number, is_float = self._number(value)
        keeps = isinstance(op, _SUMS) if is_float else not isinstance(op, fixed)
        if not keeps or number is None:
            return value.type, number if number is not None else _constant(value)
        self._values.append(_Number(op, index, number))
        return value.type

    def _is_number(self, op: Operation) -> bool:
        """Returns whether ``op`` only creates a constant or reads a word."""
        kind = type(op)
        if kind is memref.LoadOp:
            return cast(memref.LoadOp, op).memref is self._words
        if kind is arith.IndexCastOp:
            return self._word(cast(arith.IndexCastOp, op)) is not None
        return kind is arith.ConstantOp

    def _word(self, op: arith.IndexCastOp) -> int | None:
        load = op.input.owner
        if isinstance(load, memref.LoadOp) and load.memref is self._words:
            return self._sizes[_index(load.indices[0])]
        return None

    def _number(self, value: SSAValue) -> tuple[int | None, bool]:
        """Returns the value of a constant, and whether it is the bits of a float; None for any other constant."""
        op = value.owner
        if type(op) is arith.IndexCastOp:
            return self._word(op), False
        assert isinstance(op, arith.ConstantOp)
        if type(value.type) is IndexType:
            return _index(value), False
        return _bits(op.value), True


def _fixed_in(loop: scf.ForOp) -> _Kinds:
    """Returns the operations of ``loop`` whose indices stay constants: all of an innermost loop without vectors, which
    LLVM vectorizes.
    """
    if any(type(op) is scf.ForOp for op in loop.body.walk()):
        return ()
    results = (r for op in loop.body.walk() for r in op.results)
    return _QUOTIENTS if any(isinstance(r.type, VectorType) for r in results) else (Operation,)


def kind_of_operand(kind: Attribute) -> Hashable:
    """Returns a key for a type; flat operands have the same key for all extents."""
    if isinstance(kind, MemRefType) and not isinstance(kind.memory_space, SpaceAttr) and len(kind.shape) == 1:
        return kind.element_type, kind.memory_space, kind.layout
    return kind


def _index(value: SSAValue) -> int:
    op = value.owner
    assert isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr)
    return op.value.value.data


def _constant(value: SSAValue) -> Hashable:
    op = value.owner
    assert isinstance(op, arith.ConstantOp)
    if isinstance(op.value, FloatAttr):  # as bits, because 0.0 == -0.0
        return struct.pack("<d", op.value.value.data)
    return op.value


def _bits(constant: Attribute) -> int | None:
    """Returns the bits of an f32 constant, or of a vector of equal ones; None for any other."""
    if type(constant) is FloatAttr and isinstance(constant.type, Float32Type):
        found: set[float] = {constant.value.data}
    elif isinstance(constant, DenseIntOrFPElementsAttr) and isinstance(constant.get_element_type(), Float32Type):
        lanes = [constant.data.data[i : i + 4] for i in range(0, len(constant.data.data), 4)]
        return int.from_bytes(lanes[0], "little") if len(set(lanes)) == 1 else None
    else:
        return None
    return int.from_bytes(struct.pack("<f", found.pop()), "little")


# The code that they share -------------------------------------------------------------------------------------------


def _shared(members: Sequence[tuple[func.FuncOp, list[_Number]]]) -> dict[str, Variant]:
    """Make the first of ``members``, which have one form, the code of all, and erase the others; returns the calls by
    name.
    """
    representative = members[0][0]
    rows: list[tuple[_Number, tuple[int, ...]]] = []
    for row in zip(*(found for _, found in members), strict=True):
        values = tuple(number.value for number in row)
        if len(set(values)) > 1 or isinstance(values[0], Size):
            rows.append((row[0], values))
    if not _are_all_uses(representative, [number for number, _ in rows]):
        return {}
    indices = terms(values for number, values in rows if number.is_index)
    words = [values for values, term in indices.items() if term == WordTerm(term.word)]
    floats: dict[tuple[int, ...], WordTerm] = {}
    for number, values in rows:
        if not number.is_index and values not in floats:
            floats[values] = WordTerm(len(words))
            words.append(values)
    places = [(number, (indices if number.is_index else floats)[values]) for number, values in rows]
    given = list(zip(*words, strict=True)) or [()] * len(members)
    variants = {
        function.sym_name.data: Variant(
            representative.sym_name.data, cast(int, task_count(function)), tuple(each), *schedule_of(function)
        )
        for (function, _), each in zip(members, given, strict=True)
    }
    _smallest_operands([function for function, _ in members])
    _read_words(representative, places, given[0])
    for function, _ in members[1:]:
        Rewriter.erase_op(function)
    return variants


def _are_all_uses(function: func.FuncOp, places: Sequence[_Number]) -> bool:
    """Returns whether the words that ``function`` already reads are used only at ``places``, where others replace
    them.
    """
    old = _words_of(function)
    known = {(number.op, number.index) for number in places}
    values = [] if old is None else [use.operation.results[0] for use in old.uses]
    casts = [use.operation for value in values for use in value.uses]
    return all((use.operation, use.index) in known for op in casts for r in op.results for use in r.uses)


def _smallest_operands(functions: Sequence[func.FuncOp]) -> None:
    """Give each operand of the first function the smallest extent that it has in any of them."""
    count = len(functions[0].body.block.args) - 2 - (_words_of(functions[0]) is not None)
    for i in range(count):
        kinds = [function.body.block.args[i].type for function in functions]
        smallest = min(kinds, key=lambda kind: least(element_count(shape_of(kind))))
        Rewriter.replace_value_with_new_type(functions[0].body.block.args[i], smallest)


def _read_words(function: func.FuncOp, places: Sequence[tuple[_Number, WordTerm]], given: Sequence[int]) -> None:
    """Replace the constants at ``places`` of ``function`` by words, of which ``given`` are its own values."""
    block = function.body.block
    old = _words_of(function)
    kind = MemRefType(i64, [len(given)], memory_space=GLOBAL)
    words = block.insert_arg(kind, len(block.args) - 2)
    read = CallWords(words)
    for number, term in places:
        number.op.operands[number.index] = read.value(term, number.op.operands[number.index].type)
    if old is not None:
        for load in [use.operation for use in old.uses]:
            for cast_op in [use.operation for use in load.results[0].uses]:
                Rewriter.erase_op(cast_op)
            Rewriter.erase_op(load)
        block.erase_arg(old)  # type: ignore[arg-type]
    first = block.first_op
    assert first is not None
    block.insert_ops_before(list(read.ops), first)
    function.properties["function_type"] = FunctionType.from_lists([a.type for a in block.args], [])
    set_sizes(function, given)
