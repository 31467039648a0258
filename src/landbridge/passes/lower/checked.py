"""Makes a lowered CPU kernel test the index of every access: an access outside its buffer is reported, not
performed.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, func, memref, scf, vector
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    VectorType,
    i64,
)
from xdsl.dialects.vector import CombiningKindAttr, CombiningKindFlag
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from landbridge.analysis.lowered_accesses import ACCESSES, LoweredAccess, lowered_access
from landbridge.executable.access_report import report_word
from landbridge.ir.kernel_attributes import has_sizes, set_sizes, sizes_of
from landbridge.ir.types import GLOBAL
from landbridge.passes.lower.code import zero
from landbridge.shapes.strides import row_major
from landbridge.sizes.size import Extent, Size, largest

_OUT_OF_RANGE = (1 << 62) - 1
_UNSIGNED_AT_LEAST = 9  # the number of this predicate of arith.cmpi


def guard_accesses(function: func.FuncOp) -> None:
    """Put a test before every access of ``function``, whose last memref is its report; loads outside a buffer return 0.

    ``landbridge.executable.access_report`` defines the contents of a report. If one lane of an access is outside, none
    of its lanes is accessed.
    """
    operands = [a for a in function.body.block.args if isinstance(a.type, MemRefType)]
    sizes = _Sizes(function, operands.pop()) if has_sizes(function) else None
    *buffers, report = operands
    indices: dict[SSAValue, int] = {buffer: number for number, buffer in enumerate(buffers)}
    for op in list(function.walk()):
        if isinstance(op, ACCESSES):
            access = lowered_access(op)
            if access.first <= access.last:
                word = report_word(indices.get(access.buffer, len(buffers)), access.reads)
                _guard(access, report, word, sizes)
    if sizes is not None:
        sizes.finish()


class _Sizes:
    """The Sizes in the operand ``words`` of ``function``; Sizes that only tests need are appended."""

    def __init__(self, function: func.FuncOp, words: SSAValue) -> None:
        self._function, self._words = function, words
        self._sizes: list[Extent] = list(sizes_of(function))
        self._loaded: dict[Size, SSAValue] = {}

    def value(self, size: Size) -> SSAValue:
        """Returns ``size`` as an i64, loaded at the start of the function."""
        if size not in self._loaded:
            if size not in self._sizes:
                self._sizes.append(size)
            entry = self._function.body.block
            first = entry.first_op
            assert first is not None  # a function ends in a return
            at = arith.ConstantOp(IntegerAttr(self._sizes.index(size), IndexType()))
            load = memref.LoadOp.get(self._words, [at.result])
            entry.insert_ops_before([at, load], first)
            self._loaded[size] = load.res
        return self._loaded[size]

    def finish(self) -> None:
        """Set the type of the operand and the attribute of the function to the present number of words."""
        words = MemRefType(i64, [len(self._sizes)], memory_space=GLOBAL)
        Rewriter.replace_value_with_new_type(self._words, words)
        function = self._function
        function.properties["function_type"] = FunctionType.from_lists([a.type for a in function.body.block.args], [])
        set_sizes(function, self._sizes)


class _Before:
    """Appends operations before ``anchor``, or at the end of ``block``."""

    def __init__(self, block: Block, sizes: _Sizes | None, anchor: Operation | None = None) -> None:
        self._block, self._sizes, self._anchor = block, sizes, anchor

    def add(self, op: Operation) -> SSAValue:
        if self._anchor is None:
            self._block.add_op(op)
        else:
            self._block.insert_op_before(op, self._anchor)
        return op.results[0]

    def number(self, value: Extent, ty: IntegerType | IndexType = i64) -> SSAValue:
        if isinstance(value, Size):
            assert self._sizes is not None  # a function with open operands takes its Sizes
            return self._sizes.value(value)
        return self.add(arith.ConstantOp(IntegerAttr(value, ty)))

    def plus(self, a: SSAValue, b: int) -> SSAValue:
        return self.add(arith.AddiOp(a, self.number(b))) if b else a


def _guard(access: LoweredAccess, report: SSAValue, word: int, sizes: _Sizes | None) -> None:
    """Move ``access`` into the first branch of a test, and put its report into the second."""
    op, block = access.op, access.op.parent
    assert block is not None
    before = _Before(block, sizes, op)
    shape = access.shape or (1,)
    indices = [before.add(arith.IndexCastOp(i, i64)) for i in access.indices] or [before.number(0)]
    *outer, last = indices
    inside, element = _last_axis(before, access, last, shape[-1])
    for index, extent in zip(outer, shape, strict=False):
        inside = before.add(arith.AndIOp(inside, before.add(arith.CmpiOp(index, before.number(extent), "ult"))))
    done, left_out = Block(), Block()
    types = [result.type for result in op.results]
    test = scf.IfOp(inside, types, Region(done), Region(left_out))
    block.insert_op_before(test, op)
    for old, new in zip(op.results, test.results, strict=True):
        old.replace_all_uses_with(new)
    block.detach_op(op)
    done.add_ops([op, scf.YieldOp(*op.results)])
    at = _Before(left_out, sizes)
    for index, stride in zip(outer, row_major(shape), strict=False):
        element = at.add(arith.AddiOp(element, at.add(arith.MuliOp(index, at.number(stride)))))
    found = at.plus(at.add(arith.MuliOp(element, at.number(2))), 1)
    left_out.add_op(memref.StoreOp.get(found, report, [at.number(word, IndexType())]))
    left_out.add_op(scf.YieldOp(*(at.add(_zeros(ty)) for ty in types)))


def _last_axis(before: _Before, access: LoweredAccess, index: SSAValue, extent: int) -> tuple[SSAValue, SSAValue]:
    """Returns whether all lanes are inside along the last axis, and the index of the first that is not (any index if
    all are).
    """
    if access.mask is not None:
        return _masked(before, access.mask, index, extent)
    lanes = access.last - access.first + 1
    first = before.plus(index, access.first)
    inside = before.add(arith.CmpiOp(first, before.number(largest(extent - lanes + 1, 0)), "ult"))
    past = before.add(arith.MaxSIOp(first, before.number(extent)))
    negative = before.add(arith.CmpiOp(first, before.number(0), "slt"))
    keeps = before.add(arith.OrIOp(inside, negative))
    return inside, before.add(arith.SelectOp(keeps, first, past))


def _masked(before: _Before, mask: SSAValue, index: SSAValue, extent: int) -> tuple[SSAValue, SSAValue]:
    """Returns the same as ``_last_axis``, of the lanes that ``mask`` enables."""
    assert isinstance(mask.type, VectorType)
    lanes = mask.type.get_shape()[0]
    counts = VectorType(i64, [lanes])

    def vector_of(values: Sequence[int]) -> SSAValue:
        return before.add(arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(counts, list(values))))

    spread = before.add(vector.BroadcastOp.create(operands=[index], result_types=[counts]))
    at = before.add(arith.AddiOp(spread, vector_of(range(lanes))))
    limit = before.add(vector.BroadcastOp.create(operands=[before.number(extent)], result_types=[counts]))
    outside = before.add(
        arith.CmpiOp.create(
            operands=[at, limit],
            result_types=[mask.type],
            properties={"predicate": IntegerAttr(_UNSIGNED_AT_LEAST, i64)},
        )
    )
    wrong = before.add(arith.AndIOp(mask, outside))
    places = before.add(arith.SelectOp(wrong, at, vector_of([_OUT_OF_RANGE])))
    first = before.add(
        vector.ReductionOp.create(
            operands=[places],
            result_types=[i64],
            properties={"kind": CombiningKindAttr(CombiningKindFlag.MINSI)},
        )
    )
    return before.add(arith.CmpiOp(first, before.number(_OUT_OF_RANGE), "eq")), first


def _zeros(ty: Attribute) -> Operation:
    """Returns the constant 0 of a scalar or vector type."""
    value = zero(ty.element_type if isinstance(ty, VectorType) else ty)
    if isinstance(ty, VectorType):
        assert isinstance(value, FloatAttr | IntegerAttr)
        value = DenseIntOrFPElementsAttr.from_list(ty, [value.value.data])
    return arith.ConstantOp.create(result_types=[ty], properties={"value": value})
