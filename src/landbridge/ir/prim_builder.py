"""PrimBuilder: writes one PrimFunc, a sequence of stages over memrefs.

A stage is a ``linalg.generic`` (with ``lb.extents``, its loop bounds), a ``linalg.fill`` before a reduction,
``lb.pad``, ``lb.steps`` around stages that are iterated, or ``lb.forall``, scalar code with loops of its own. Stages
pass data in temporaries (``memref.alloc``), which later passes inline or place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from xdsl.builder import Builder
from xdsl.dialects import arith, func, linalg
from xdsl.dialects.builtin import AffineMapAttr, FloatAttr, FunctionType, IndexType, IntegerAttr, MemRefType
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint

from landbridge.ir.allocations import buffer_alloc
from landbridge.ir.fill import fill
from landbridge.ir.kernel_attributes import mark_prim, set_loop_extents
from landbridge.ir.loop_builder import LoopBuilder
from landbridge.ir.prim_ops import ForallOp, GenericOp, PadOp, StepsOp
from landbridge.ir.scalar_dtypes import accumulator, arith_type, in_range, is_float, meeting
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.size_exprs import extent_expr
from landbridge.ir.types import compute_type, dtype_of, memref_type, shape_of, vdevice_of
from landbridge.sizes.size import Extent, Size

#: A memref and its indices: an AffineMap, or a function from the loop dims to index expressions.
Access: TypeAlias = tuple[SSAValue, AffineMap | Callable[..., Sequence[Any]]]
Body: TypeAlias = Callable[..., Value | Sequence[Value]]


def affine_map(dims: int, spec: AffineMap | Callable[..., Sequence[Any]]) -> AffineMap:
    """Returns an AffineMap of ``dims`` dims from a function of them; results may be integers."""
    if isinstance(spec, AffineMap):
        return spec
    results = spec(*(AffineExpr.dimension(i) for i in range(dims)))
    return AffineMap(dims, 0, tuple(extent_expr(r) if isinstance(r, int | Size) else r for r in results))


def _hidden_loops(dims: int, maps: Sequence[AffineMap]) -> list[int]:
    """Returns the loops that index no operand by themselves."""
    alone = {e.position for m in maps for e in m.results if isinstance(e, AffineDimExpr)}
    return [d for d in range(dims) if d not in alone]


class PrimBuilder:
    """Builds the PrimFunc ``name``; ``inputs`` and ``outputs`` are tensor types, its arguments their memrefs."""

    def __init__(self, name: str, inputs: Sequence[Attribute], outputs: Sequence[Attribute]) -> None:
        arguments = [memref_type(shape_of(t), dtype_of(t), vdevice_of(t).space) for t in (*inputs, *outputs)]
        arguments = [_signless(t) for t in arguments]
        self._block = Block(arg_types=arguments)
        self._builder = Builder(InsertPoint.at_end(self._block))
        self._name = name
        self._in_steps = False
        self._dtypes: dict[SSAValue, str] = {
            arg: dtype_of(t) for arg, t in zip(self._block.args, (*inputs, *outputs), strict=True)
        }
        self.inputs: list[SSAValue] = list(self._block.args[: len(inputs)])
        self.outputs: list[SSAValue] = list(self._block.args[len(inputs) :])

    def dtype(self, buffer: SSAValue) -> str:
        """Returns the dtype name of an argument or temporary, sign included."""
        return self._dtypes[buffer]

    def temp(self, shape: Sequence[Extent], dtype: str) -> SSAValue:
        """Add a temporary of this PrimFunc, in the global scope."""
        ty = _signless(memref_type(shape, dtype))
        result = self._builder.insert(buffer_alloc(ty)).memref
        self._dtypes[result] = dtype
        return result

    def generic(
        self,
        iterators: str,
        extents: Sequence[Extent],
        ins: Sequence[Access],
        outs: Sequence[Access],
        body: Body,
        init: float | int | None = None,
    ) -> None:
        """Append one stage. ``iterators`` has a letter per loop, "p" parallel or "r" reduction; ``extents`` are their
        bounds.

        ``body(s, *inputs)`` of an all-parallel stage, ``body(s, *accumulators, *inputs)`` of a reduction, returns the
        values of ``outs``. ``init`` fills the outputs of a reduction first.

        A reduction into float16 or bfloat16 accumulates in float32 and rounds once. If such operands and float32 ones
        (also accumulators) occur in one stage, the body sees all as float32, and what it returns is rounded.
        """
        reduces = "r" in iterators
        if reduces and any(accumulator(self._dtypes[b]) != self._dtypes[b] for b, _ in outs):
            wide = [(self._accumulator_of(b), spec) for b, spec in outs]
            self.generic(iterators, extents, ins, wide, body, init)
            for (total, _), (target, _) in zip(wide, outs, strict=True):
                if total is not target:
                    self._round(total, target)
            return
        dims = len(iterators)
        if reduces and init is not None:
            for target, _ in outs:
                constant = self._constant(init, self._dtypes[target])
                self._builder.insert(fill(constant, target))
        maps = [affine_map(dims, spec) for _, spec in ins]
        out_maps = [affine_map(dims, spec) for _, spec in outs]
        sources = [b for b, _ in ins]
        hidden = [d for d in _hidden_loops(dims, [*maps, *out_maps]) if d or not self._in_steps]
        if hidden:
            # MLIR derives a loop's bound from an operand it indexes alone: a window that nobody reads declares it.
            sources.append(self.temp([extents[d] for d in hidden], "float32"))
            maps.append(AffineMap(dims, 0, tuple(AffineExpr.dimension(d) for d in hidden)))
        buffers = [*sources, *(b for b, _ in outs)]
        maps += out_maps
        types = []
        for b in buffers:
            assert isinstance(b.type, MemRefType)
            types.append(b.type.element_type)
        block = Block(arg_types=types)
        s = ScalarBuilder(Builder(InsertPoint.at_end(block)))
        values = [s.wrap(a, self._dtypes[b]) for a, b in zip(block.args, buffers, strict=True)]
        accumulators = values[len(sources) :]
        dtypes = {self._dtypes[b] for b, _ in (*ins, *outs)}
        xs = [s.cast(v, meeting(v.dtype, dtypes)) for v in values[: len(ins)]]
        produced = body(s, *accumulators, *xs) if reduces else body(s, *xs)
        results = [produced] if isinstance(produced, Value) else list(produced)
        wanted = [self._dtypes[b] for b, _ in outs]
        results = [s.cast(r, t) if meeting(t, dtypes) == r.dtype else r for r, t in zip(results, wanted, strict=True)]
        block.add_op(linalg.ops.YieldOp.create(operands=[r.ssa for r in results]))
        kinds = {"p": IteratorTypeAttr.parallel(), "r": IteratorTypeAttr.reduction()}
        op = GenericOp.over(
            sources,
            [b for b, _ in outs],
            Region(block),
            [AffineMapAttr(m) for m in maps],
            [kinds[c] for c in iterators],
        )
        set_loop_extents(op, extents)
        self._builder.insert(op)

    def _accumulator_of(self, target: SSAValue) -> SSAValue:
        """Returns where ``target`` is accumulated: itself, or a temporary of more precision."""
        dtype = self._dtypes[target]
        wide = accumulator(dtype)
        return target if wide == dtype else self.temp(shape_of(target.type), wide)

    def _round(self, source: SSAValue, target: SSAValue) -> None:
        """Write ``source`` to ``target``, rounded to its dtype."""
        shape = shape_of(target.type)
        whole = AffineMap.identity(len(shape))
        self.generic("p" * len(shape), shape, [(source, whole)], [(target, whole)], lambda s, v: v)

    def pad(self, source: SSAValue, low: Sequence[Extent], high: Sequence[Extent], value: float | int) -> SSAValue:
        """Returns a temporary: ``source`` with ``low`` and ``high`` elements of ``value`` around each axis."""
        shape = [e + a + b for e, a, b in zip(shape_of(source.type), low, high, strict=True)]
        dtype = self._dtypes[source]
        target = self.temp(shape, dtype)
        self._builder.insert(PadOp(source, target, low, self._attr(value, dtype)))
        return target

    def steps(self, count: Extent, buffers: Sequence[SSAValue], build: Callable[..., None]) -> None:
        """Append stages that take ``count`` iterations: ``build(*buffers)`` writes them, each with a first loop of
        ``count``.

        A stage may read what an earlier iteration wrote. ``build`` makes no temporaries.
        """
        block = Block(arg_types=[b.type for b in buffers])
        self._dtypes.update((a, self._dtypes[b]) for a, b in zip(block.args, buffers, strict=True))
        outside, self._builder = self._builder, Builder(InsertPoint.at_end(block))
        self._in_steps = True
        build(*block.args)
        self._in_steps, self._builder = False, outside
        self._builder.insert(StepsOp(count, buffers, Region(block)))

    def forall(self, count: Extent, buffers: Sequence[SSAValue], build: Callable[..., None]) -> None:
        """Append the only stage of a PrimFunc of scalar code: ``build(s, i, *buffers)`` writes iteration ``i`` of
        ``count``.

        ``s`` is a LoopBuilder, ``i`` a Value. Iterations are independent; each has temporaries of its own.
        """
        block = Block(arg_types=[IndexType(), *(b.type for b in buffers)])
        number, *inside = block.args
        self._dtypes.update((a, self._dtypes[b]) for a, b in zip(inside, buffers, strict=True))
        s = LoopBuilder(Builder(InsertPoint.at_end(block)))
        build(s, s.wrap(number, "index"), *inside)
        self._builder.insert(ForallOp(count, buffers, Region(block)))

    def _attr(self, value: float | int, dtype: str) -> Any:
        ty: Any = arith_type(dtype)
        return FloatAttr(in_range(value, dtype), ty) if is_float(dtype) else IntegerAttr(int(value), ty)

    def _constant(self, value: float | int, dtype: str) -> SSAValue:
        return self._builder.insert(arith.ConstantOp(self._attr(value, dtype))).result

    def finish(self) -> func.FuncOp:
        """Close the PrimFunc and return it; the builder is not used after this."""
        self._builder.insert(func.ReturnOp.create())
        op = func.FuncOp(self._name, FunctionType.from_lists(list(self._block.arg_types), []), Region(self._block))
        mark_prim(op)
        return op


def _signless(ty: MemRefType[Any]) -> MemRefType[Any]:
    element = compute_type(ty.element_type)
    return ty if element == ty.element_type else MemRefType(element, ty.shape, ty.layout, ty.memory_space)
