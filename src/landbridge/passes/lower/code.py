"""Writes structured code: folding index arithmetic, loops, loads and stores on flat memrefs.

An index is a Python int if it is known at compile time, a Size if it is known once the input shapes are, and an SSA
value otherwise. The Sizes that the code needs are words of an additional operand, ``extents``, which the caller fills
in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeAlias

from xdsl.dialects import arith, memref, scf, vector
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    UnitAttr,
    VectorType,
    i1,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

from landbridge.errors import CodegenError
from landbridge.identity_map import IdentityMap
from landbridge.ir.length_ops import SizedByOp, has_lengths, is_length
from landbridge.ir.new_operation import new_operation
from landbridge.ir.prim_ops import OrderLoadsOp, PrefetchOp
from landbridge.sizes.size import Extent, Size, largest, of_symbol, smallest

Index: TypeAlias = int | Size | SSAValue
#: A location in a memref: the element of a flat one; row and column of memory in rows; row, pixel and lane of an image.
Where: TypeAlias = Index | tuple[Index, ...]
INDEX = IndexType()


@cache
def vector_type(element: Attribute, lanes: int) -> VectorType[Any]:
    """Returns ``vector<lanes x element>``, cached because types are costly to create and every operation needs one."""
    return VectorType(element, [lanes])


@cache
def _index_attr(x: int) -> IntegerAttr[IndexType]:
    return IntegerAttr(x, INDEX)


class Code:
    """Appends operations to the current block of a function; constants go to the head of its entry block.

    Index arithmetic that the block or an enclosing one contains already is reused.
    """

    def __init__(
        self,
        entry: Block,
        extents: SSAValue | None = None,
        words: dict[Size, int] | None = None,
        lengths: Mapping[str, SSAValue] | None = None,
    ) -> None:
        self.entry = entry
        #: The flat memrefs of one integer that are lengths, by dimension.
        self.lengths: Mapping[str, SSAValue] = lengths or {}
        self._loaded: dict[str, SSAValue] = {}
        self._extents = extents
        #: The Sizes in ``extents``, with their places in it; several blocks of code may share them.
        self.words: dict[Size, int] = {} if words is None else words
        self._sizes: dict[Size, SSAValue] = {}
        self.block = entry
        self._constants: dict[tuple[Attribute, Attribute], SSAValue] = {}
        #: The latest constants by their attribute, because hashing an attribute with its type is slow.
        self._same: IdentityMap[Attribute, tuple[Attribute, SSAValue]] = IdentityMap()
        self._same_splats: IdentityMap[Attribute, tuple[Attribute, int, SSAValue]] = IdentityMap()
        #: The index constants, which are the most frequent, by value.
        self._values: dict[int, SSAValue] = {}
        self._splats: dict[tuple[Attribute, Attribute, int], SSAValue] = {}
        self._constant_ops: list[Operation] = []
        #: Index operations that the end of the current block can use, by kind and operands; those of inner blocks come
        #: last.
        self._computed: dict[tuple[type[Operation], SSAValue, SSAValue | int], SSAValue] = {}

    def add_op(self, op: Operation) -> SSAValue:
        """Append ``op``; returns its first result."""
        self.block.add_op(op)
        return op.results[0]

    def emit(
        self, cls: type[Operation], operands: Sequence[SSAValue], result: Attribute, **properties: Any
    ) -> SSAValue:
        """Append an operation with one result, and return it."""
        return self.add_op(new_operation(cls, operands, (result,), properties))

    def _index(self, cls: type[Operation], a: Index, b: Index) -> SSAValue:
        operands = self.value(a), self.value(b)
        key = cls, *operands
        if (found := self._computed.get(key)) is None:
            found = self._computed[key] = self.emit(cls, operands, INDEX)
        return found

    @contextmanager
    def _appending_to(self, block: Block) -> Iterator[None]:
        """Append to ``block`` while the ``with`` lasts; it will become a region of an operation in the current
        block.
        """
        outside, known = self.block, len(self._computed)
        self.block = block
        yield
        self.block = outside
        while len(self._computed) > known:
            self._computed.popitem()

    def constant(self, attr: Attribute, ty: Attribute) -> SSAValue:
        """Returns a constant, which the whole function shares."""
        same = self._same.get(attr)
        if same is not None and same[0] is ty:
            return same[1]
        key = (attr, ty)
        if (found := self._constants.get(key)) is None:
            op = new_operation(arith.ConstantOp, (), (ty,), {"value": attr})
            self._constant_ops.append(op)
            found = self._constants[key] = op.results[0]
        self._same[attr] = ty, found
        return found

    def hoist(self, op: Operation) -> SSAValue:
        """Put ``op`` at the head of the entry block, among the constants; returns its first result."""
        self._constant_ops.append(op)
        return op.results[0]

    def unflatten(self, t: Index, extents: Sequence[Extent]) -> list[Index]:
        """Returns the loop indices of flat iteration ``t``, row-major; ``t`` is below the product of ``extents``."""
        found: list[Index] = []
        for extent in reversed(extents[1:]):
            found.append(self.remainder(t, extent))
            t = self.quotient(t, extent)
        return [t, *reversed(found)] if extents else []

    def finish(self) -> None:
        """Put the constants at the head of the entry block."""
        first = self.entry.first_op
        if first is None:
            self.entry.add_ops(self._constant_ops)
        else:
            self.entry.insert_ops_before(self._constant_ops, first)

    def value(self, x: Index) -> SSAValue:
        """Returns ``x`` as an SSA value."""
        if isinstance(x, int):
            if (found := self._values.get(x)) is None:
                found = self._values[x] = self.constant(_index_attr(x), INDEX)
            return found
        return self._size(x) if isinstance(x, Size) else x

    def number(self, x: Extent, ty: Attribute) -> SSAValue:
        """Returns ``x`` as an integer of type ``ty``."""
        if isinstance(x, Size):
            return self._size(x) if isinstance(ty, IndexType) else self.hoist(arith.IndexCastOp(self._size(x), ty))
        assert isinstance(ty, IntegerType | IndexType)
        return self.constant(IntegerAttr(x, ty), ty)

    def _size(self, size: Size) -> SSAValue:
        """Returns ``size``: the word that holds it, loaded once at the head of the entry block, or computed there from
        lengths.
        """
        if (found := self._sizes.get(size)) is None:
            if has_lengths([size]):
                found = self._sizes[size] = self.hoist(SizedByOp(size, self._dimensions(size)))
                return found
            if self._extents is None:
                raise CodegenError(f"{size} is known when the input comes, and code of this form takes no such numbers")
            at = self.value(self.words.setdefault(size, len(self.words)))
            word = self.hoist(memref.LoadOp.get(self._extents, [at]))
            found = self._sizes[size] = self.hoist(arith.IndexCastOp(word, INDEX))
        return found

    def _dimensions(self, size: Size) -> dict[str, SSAValue]:
        """Returns the values of the dimensions of ``size``, by name."""
        found: dict[str, SSAValue] = {}
        for name, symbol in size.symbols.items():
            if not is_length(name):
                found[name] = self.value(of_symbol(symbol))
                continue
            if name not in self._loaded:
                number = self.hoist(memref.LoadOp.get(self.lengths[name], [self.value(0)]))
                self._loaded[name] = self.hoist(arith.IndexCastOp(number, INDEX))
            found[name] = self._loaded[name]
        return found

    def add(self, a: Index, b: Index) -> Index:
        """Returns ``a + b``."""
        if isinstance(b, int) and b == 0:
            return a
        if isinstance(a, int) and a == 0:
            return b
        if isinstance(a, (int, Size)) and isinstance(b, (int, Size)):
            return a + b
        return self._index(arith.AddiOp, a, b)

    def mul(self, a: Index, b: Index) -> Index:
        """Returns ``a * b``."""
        if isinstance(a, (int, Size)) and isinstance(b, (int, Size)):
            return a * b
        for x, y in ((a, b), (b, a)):
            if isinstance(x, int) and x in (0, 1):
                return y if x else 0
        return self._index(arith.MuliOp, a, b)

    def times(self, a: SSAValue, b: Extent) -> SSAValue:
        """Returns ``a * b``, always as a multiplication, so that kernels which differ in ``b`` alone have the same
        code.
        """
        return self._index(arith.MuliOp, a, b)

    def floordiv(self, a: Index, b: int) -> Index:
        """Returns the floor of ``a / b``, for ``b > 0``."""
        if not isinstance(a, SSAValue) or b == 1:
            return a if b == 1 else a // b  # type: ignore[operator]
        return self._index(arith.FloorDivSIOp, a, b)

    def quotient(self, a: Index, b: Extent) -> Index:
        """Returns ``a / b`` for an ``a`` that is not negative."""
        if not isinstance(a, SSAValue) or b == 1:
            return a if b == 1 else a // b  # type: ignore[operator]
        return self._index(arith.DivUIOp, a, b)

    def remainder(self, a: Index, b: Extent) -> Index:
        """Returns ``a mod b`` for an ``a`` that is not negative."""
        if not isinstance(a, SSAValue) or b == 1:
            return 0 if b == 1 else a % b  # type: ignore[operator]
        return self._index(arith.RemUIOp, a, b)

    def minimum(self, a: Index, b: Index) -> Index:
        """Returns the smaller, signed."""
        if not isinstance(a, SSAValue) and not isinstance(b, SSAValue):
            return smallest(a, b)
        return self._index(arith.MinSIOp, a, b)

    def maximum(self, a: Index, b: Index) -> Index:
        """Returns the larger, signed."""
        if not isinstance(a, SSAValue) and not isinstance(b, SSAValue):
            return largest(a, b)
        return self._index(arith.MaxSIOp, a, b)

    def affine(self, e: AffineExpr, dims: Callable[[int], Index]) -> Index:
        """Returns the value of an affine expression; ``dims`` gives the loop indices, none of them negative
        under mod.
        """
        if isinstance(e, AffineConstantExpr):
            return e.value
        if isinstance(e, AffineDimExpr):
            return dims(e.position)
        if isinstance(e, AffineBinaryOpExpr):
            a, b = self.affine(e.lhs, dims), self.affine(e.rhs, dims)
            if e.kind == AffineBinaryOpKind.Add:
                return self.add(a, b)
            if e.kind == AffineBinaryOpKind.Mul:
                return self.mul(a, b)
            if isinstance(b, int) and e.kind == AffineBinaryOpKind.FloorDiv:
                return self.floordiv(a, b)
            if not isinstance(b, SSAValue) and e.kind == AffineBinaryOpKind.Mod:
                return self.remainder(a, b)
        raise CodegenError(f"affine expression {e} cannot be lowered")

    def inside(self, index: Index, extent: Index) -> SSAValue:
        """Returns ``0 <= index < extent`` as an i1; one unsigned comparison."""
        return self.add_op(arith.CmpiOp(self.value(index), self.value(extent), "ult"))

    def at_most(self, a: Index, b: Index) -> SSAValue:
        """Returns ``a <= b``, signed, as an i1."""
        return self.add_op(arith.CmpiOp(self.value(a), self.value(b), "sle"))

    def all_of(self, *conditions: SSAValue) -> SSAValue:
        """Returns whether every one of ``conditions`` holds, as an i1."""
        first, *others = conditions
        for other in others:
            first = self.emit(arith.AndIOp, [first, other], first.type)
        return first

    def loop(
        self,
        low: Index,
        high: Index,
        step: Index,
        carried: Sequence[SSAValue],
        body: Callable[[SSAValue, list[SSAValue]], Sequence[SSAValue]],
    ) -> list[SSAValue]:
        """Emit ``for i in range(low, high, step)``; returns the values carried out of the last iteration.

        ``body(i, carried)`` returns the carried values of the next iteration.
        """
        low_v, high_v, step_v = self.value(low), self.value(high), self.value(step)
        block = Block(arg_types=[INDEX, *(v.type for v in carried)])
        with self._appending_to(block):
            results = body(block.args[0], list(block.args[1:]))
        block.add_op(new_operation(scf.YieldOp, results))
        op = new_operation(
            scf.ForOp, [low_v, high_v, step_v, *carried], [v.type for v in carried], regions=[Region(block)]
        )
        self.block.add_op(op)
        return list(op.results)

    def choose(self, condition: SSAValue, then: Callable[[], SSAValue], orelse: Callable[[], SSAValue]) -> SSAValue:
        """Returns the value of one of two pieces of code, only one of which runs."""
        return self.branch(condition, lambda: [then()], lambda: [orelse()])[0]

    def branch(
        self,
        condition: SSAValue,
        then: Callable[[], Sequence[SSAValue]],
        orelse: Callable[[], Sequence[SSAValue]],
    ) -> list[SSAValue]:
        """Returns the values of one of two pieces of code, only one of which runs."""
        regions: list[Region] = []
        values: Sequence[SSAValue] = ()
        for build in (then, orelse):
            block = Block()
            with self._appending_to(block):
                values = build()
            block.add_op(new_operation(scf.YieldOp, values))
            regions.append(Region(block))
        op = scf.IfOp(condition, [v.type for v in values], regions[0], regions[1])
        self.block.add_op(op)
        return list(op.results)

    def repeat(
        self,
        carried: Sequence[SSAValue],
        test: Callable[[list[SSAValue]], Sequence[SSAValue]],
        body: Callable[[list[SSAValue]], Sequence[SSAValue]],
    ) -> list[SSAValue]:
        """Emit a ``while`` loop; returns the values that the last call of ``test`` gives.

        ``test(carried)`` returns whether to continue, followed by values; ``body(values)`` returns the carried values
        of the next iteration.
        """
        before = Block(arg_types=[v.type for v in carried])
        with self._appending_to(before):
            condition, *passed = test(list(before.args))
        before.add_op(new_operation(scf.ConditionOp, [condition, *passed]))
        types = [v.type for v in passed]
        after = Block(arg_types=types)
        with self._appending_to(after):
            results = body(list(after.args))
        after.add_op(new_operation(scf.YieldOp, results))
        op = scf.WhileOp(carried, types, Region(before), Region(after))
        self.block.add_op(op)
        return list(op.results)

    def when(self, condition: SSAValue, then: Callable[[], None], orelse: Callable[[], None] | None = None) -> None:
        """Emit code that runs only if ``condition`` holds, and optionally code that runs only if it does not."""
        regions = []
        for build in (then, orelse):
            region = Region()
            if build is not None:
                block = Block()
                with self._appending_to(block):
                    build()
                block.add_op(new_operation(scf.YieldOp))
                region = Region(block)
            regions.append(region)
        self.block.add_op(scf.IfOp(condition, [], regions[0], regions[1]))

    def load(self, buffer: SSAValue, where: Where, element: Attribute) -> SSAValue:
        """Load one element."""
        return self.emit(memref.LoadOp, [buffer, *self._indices(where)], element)

    def store(self, value: SSAValue, buffer: SSAValue, where: Where) -> None:
        """Store one element."""
        self.block.add_op(new_operation(memref.StoreOp, [value, buffer, *self._indices(where)]))

    def _indices(self, where: Where) -> list[SSAValue]:
        return [self.value(i) for i in (where if isinstance(where, tuple) else (where,))]

    def mask(self, lanes: int, active: Index) -> SSAValue:
        """Returns a mask that enables the first ``active`` lanes."""
        ty = vector_type(i1, lanes)
        if not isinstance(active, int):
            return self._first_lanes(lanes, active)
        return self.constant(DenseIntOrFPElementsAttr.from_list(ty, [int(i < active) for i in range(lanes)]), ty)

    def _first_lanes(self, lanes: int, active: Index) -> SSAValue:
        count = self.value(active)
        key = vector.CreateMaskOp, count, lanes
        if (found := self._computed.get(key)) is None:
            found = self._computed[key] = self.add_op(vector.CreateMaskOp([count], vector_type(i1, lanes)))
        return found

    def mask_between(self, lanes: int, low: Index, high: Index) -> SSAValue:
        """Returns a mask that enables lanes ``low <= i < high``."""
        if isinstance(low, int) and low <= 0:
            return self.mask(lanes, high)
        ty = vector_type(i1, lanes)
        if isinstance(low, int) and isinstance(high, int):
            return self.constant(
                DenseIntOrFPElementsAttr.from_list(ty, [int(low <= i < high) for i in range(lanes)]), ty
            )
        below, skipped = self._first_lanes(lanes, high), self._first_lanes(lanes, low)
        key = arith.AndIOp, below, skipped
        if (found := self._computed.get(key)) is None:
            differ = self.emit(arith.XOrIOp, [below, skipped], ty)
            found = self._computed[key] = self.emit(arith.AndIOp, [below, differ], ty)
        return found

    def load_between(
        self, buffer: SSAValue, where: Where, element: Attribute, lanes: int, low: Index, high: Index, fill: Attribute
    ) -> SSAValue:
        """Load ``lanes`` elements, of which only ``low <= i < high`` are read; the others are ``fill``."""
        operands = [buffer, *self._indices(where), self.mask_between(lanes, low, high)]
        return self.emit(
            vector.MaskedLoadOp, [*operands, self.splat(fill, element, lanes)], vector_type(element, lanes)
        )

    def load_vector(self, buffer: SSAValue, where: Where, element: Attribute, lanes: int, active: Index) -> SSAValue:
        """Load ``lanes`` elements; unless ``active`` is 0, only the first ``active`` are read and the others are 0."""
        ty = vector_type(element, lanes)
        if isinstance(active, int) and not active:
            return self.emit(vector.LoadOp, [buffer, *self._indices(where)], ty)
        operands = [
            buffer,
            *self._indices(where),
            self.mask(lanes, active),
            self.splat(zero(element), element, lanes),
        ]
        return self.emit(vector.MaskedLoadOp, operands, ty)

    def prefetch(self, buffer: SSAValue, where: Where, *, beyond_l1: bool = False) -> None:
        """Prefetch the cache line of an element, which may lie outside ``buffer``; ``beyond_l1``: into L2 only."""
        attributes = {"beyond_l1": UnitAttr()} if beyond_l1 else {}
        self.block.add_op(new_operation(PrefetchOp, [buffer, *self._indices(where)], attributes=attributes))

    def order_loads(self) -> None:
        """Keep the loads so far before the loads that follow."""
        self.block.add_op(new_operation(OrderLoadsOp))

    def store_vector(self, value: SSAValue, buffer: SSAValue, where: Where, lanes: int, active: Index) -> None:
        """Store ``lanes`` elements, or the first ``active`` unless that is 0."""
        if isinstance(active, int) and not active:
            self.block.add_op(new_operation(vector.StoreOp, [value, buffer, *self._indices(where)]))
        else:
            operands = [buffer, *self._indices(where), self.mask(lanes, active), value]
            self.block.add_op(new_operation(vector.MaskedStoreOp, operands))

    def pack(self, values: Sequence[SSAValue], lanes: int = 0) -> SSAValue:
        """Returns a vector of ``values``, padded with zeros to ``lanes``."""
        element = values[0].type
        result = self.splat(zero(element), element, max(lanes, len(values)))
        for lane, value in enumerate(values):
            result = self.add_op(vector.InsertOp(value, result, [lane]))
        return result

    def splat(self, attr: Attribute, element: Attribute, lanes: int) -> SSAValue:
        """Returns a vector with a constant in every lane."""
        same = self._same_splats.get(attr)
        if same is not None and same[0] is element and same[1] == lanes:
            return same[2]
        key = (attr, element, lanes)
        if (found := self._splats.get(key)) is None:
            ty = vector_type(element, lanes)
            assert isinstance(attr, FloatAttr | IntegerAttr)
            found = self.constant(DenseIntOrFPElementsAttr.from_list(ty, [attr.value.data]), ty)
            self._splats[key] = found
        self._same_splats[attr] = element, lanes, found
        return found

    def broadcast(self, value: SSAValue, lanes: int) -> SSAValue:
        """Returns a vector with a scalar in every lane."""
        owner = value.owner
        if isinstance(owner, arith.ConstantOp):
            return self.splat(owner.value, value.type, lanes)
        return self.emit(vector.BroadcastOp, [value], vector_type(value.type, lanes))


def zero(element: Any) -> Attribute:
    """Returns the constant 0 of an element type."""
    if isinstance(element, IntegerType | IndexType):
        return IntegerAttr(0, element)
    return FloatAttr(0.0, element)
