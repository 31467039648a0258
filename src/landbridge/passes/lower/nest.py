"""Loop nests: the stages of a PrimFunc, grouped into perfect nests whose intermediate values stay in registers.

A nest consists of at most one reduction stage, followed by elementwise stages over the same points. A stage reads
memory, or the register value of an earlier stage of its nest.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import field

from xdsl.dialects import arith, linalg, memref
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from landbridge.errors import CodegenError
from landbridge.ir.kernel_attributes import tile_bounds
from landbridge.ir.plain_attributes import ints
from landbridge.ir.prim_ops import PadOp
from landbridge.ir.size_exprs import extent_expr
from landbridge.ir.stages import Generic, PrimView, is_identity, view_generic
from landbridge.ir.types import shape_of
from landbridge.passes.lower.access import ElementAccess, Guard, Linear, linear_index, linearize, rename_access
from landbridge.passes.lower.row_memory import index_strides
from landbridge.records import record
from landbridge.sizes.size import at_least, same

#: Operations of the dialect ``math`` that take one instruction.
_SHORT = frozenset(f"math.{name}" for name in ("absf", "ceil", "copysign", "floor", "fma", "sqrt", "trunc"))


@record(frozen=True)
class LoopDim:
    """A loop: its extent, and whether it is a reduction loop."""

    extent: int
    reduction: bool


@record(frozen=True)
class Register:
    """The value of output ``output`` of stage ``stage`` of the same nest, at the same point."""

    stage: int
    output: int


@record(frozen=True)
class Scan:
    """Makes a reduction a running fold, in which each iteration writes a result.

    ``state`` is the number of the body's argument that holds the state of the previous iteration. The last write of the
    stage writes the final state. ``back``: iterations go from the last element to the first.
    """

    state: int
    back: bool


@record(frozen=True, eq=False)
class Stage:
    """One generic over the dims of its nest; a running fold is the only stage of its nest.

    ``inits`` are the initial values of a reduction's outputs. A read is None if the body does not use the operand.
    ``dims`` maps the generic's own loop numbers (for ``linalg.index``) to indices over the nest's dims.
    """

    body: Block
    reads: tuple[ElementAccess | Register | None, ...]
    writes: tuple[ElementAccess, ...]
    stored: tuple[bool, ...]
    inits: tuple[Attribute | None, ...]
    dims: Mapping[int, Linear]
    reduces: bool
    scan: Scan | None = None


@record(frozen=True)
class Bound:
    """A padded tile: dims ``outer`` and ``inner`` stand for ``outer * tile + inner < extent``.

    ``fits``: every buffer that is written has memory for whole tiles, as blocked layouts do.
    """

    outer: int
    inner: int
    tile: int
    extent: int
    fits: bool


@record
class Nest:
    """A perfect loop nest."""

    dims: list[LoopDim]
    stages: list[Stage]
    bounds: list[Bound] = field(default_factory=list)

    @property
    def reduction(self) -> Stage | None:
        """Returns the reduction stage, which is the first; None if there is none."""
        return self.stages[0] if self.stages[0].reduces else None

    @property
    def is_scan(self) -> bool:
        """Returns whether it is a running fold."""
        return self.stages[0].scan is not None

    @property
    def is_empty(self) -> bool:
        """Returns whether no point is computed, because a parallel loop has no iterations."""
        return any(d.extent == 0 and not d.reduction for d in self.dims)

    @property
    def partial_tiles(self) -> list[Bound]:
        """Returns the bounds of parallel loops whose last tile exceeds the memory of a result."""
        return [b for b in self.bounds if b.extent % b.tile and not (b.fits or self.dims[b.inner].reduction)]

    def loaded(self) -> set[SSAValue]:
        """Returns the buffers that bodies read at computed indices."""
        return {buffer for s in self.stages for buffer in loaded_buffers(s.body)}

    def accesses(self) -> list[ElementAccess]:
        """Returns all reads of memory, and the writes that are stored."""
        found: list[ElementAccess] = []
        for s in self.stages:
            found += [r for r in s.reads if isinstance(r, ElementAccess)]
            found += [w for w, stored in zip(s.writes, s.stored, strict=True) if stored]
        return found


def used_buffers(nests: Iterable[Nest]) -> set[SSAValue]:
    """Returns every buffer that ``nests`` read or write."""
    return {b for n in nests for b in (*(a.buffer for a in n.accesses()), *n.loaded())}


def widest_bytes(body: Block) -> int:
    """Returns the bytes of the widest value that vectors of a body hold.

    Values used only as indices of loads are not counted, nor are loop indices that are converted to integers.
    """
    held: set[SSAValue] = set(body.args)
    for op in reversed(list(body.ops)):
        if isinstance(op, linalg.ops.YieldOp | memref.StoreOp):
            held.update(op.operands)
        elif not isinstance(op, memref.LoadOp | linalg.ops.IndexOp) and any(r in held for r in op.results):
            counted = isinstance(op, arith.IndexCastOp) and isinstance(op.input.owner, linalg.ops.IndexOp)
            held.update(() if counted else op.operands)
    return max((getattr(v.type, "bitwidth", 8) // 8 for v in held), default=4)


def body_size(nest: Nest) -> int:
    """Returns the number of operations per point."""
    return sum(len(s.body.ops) for s in nest.stages)


def takes_many(op: Operation) -> bool:
    """Returns whether ``op`` is a function that takes many instructions."""
    return op.name.startswith("math.") and op.name not in _SHORT


def loaded_buffers(body: Block) -> list[SSAValue]:
    """Returns the buffers that the body's own loads and stores access."""
    return [op.memref for op in body.ops if isinstance(op, memref.LoadOp | memref.StoreOp)]


@record(frozen=True)
class _Pad:
    source: SSAValue
    low: tuple[int, ...]
    value: Attribute


def build_nests(prim: PrimView) -> list[Nest]:
    """Returns the nests of a PrimFunc, in order. Raises CodegenError for a sequence of stages that it does not know."""
    temporaries = set(prim.temporaries)
    pads: dict[SSAValue, _Pad] = {}
    fills: dict[SSAValue, Attribute] = {}
    groups: list[_Group] = []
    in_parts: set[SSAValue] = set()
    for op in prim.stages:
        if isinstance(op, PadOp):
            pads[op.destination] = _Pad(op.source, ints(op.low), op.value)
        elif isinstance(op, linalg.ops.FillOp):
            constant = op.inputs[0].owner
            if not isinstance(constant, arith.ConstantOp):
                raise CodegenError("linalg.fill of a value that is not a constant")
            fills[op.outputs[0]] = constant.value
        else:
            assert isinstance(op, linalg.ops.GenericOp)
            g = view_generic(op)
            if not (groups and groups[-1].join(g, pads, in_parts)):
                in_parts.update(groups[-1].outputs if groups else ())
                groups.append(_Group(g, pads, fills))
    readers: dict[SSAValue, int] = {}
    for group in groups:
        for buffer in group.memory_reads():
            readers[buffer] = readers.get(buffer, 0) + 1
    return [group.nest(lambda b: b not in temporaries or readers.get(b, 0) > 0) for group in groups]


def _access(buffer: SSAValue, m: AffineMap, pads: Mapping[SSAValue, _Pad]) -> ElementAccess:
    guards: list[Guard] = []
    fill: Attribute | None = None
    exprs = list(m.results)
    while (pad := pads.get(buffer)) is not None:
        buffer, fill = pad.source, pad.value
        exprs = [e if same(low, 0) else e + extent_expr(-low) for e, low in zip(exprs, pad.low, strict=True)]
        inner = shape_of(buffer.type)
        outer_changed = zip(exprs, inner, strict=True)
        guards += [Guard(linearize(e), extent) for e, extent in outer_changed]
    ty = buffer.type
    assert isinstance(ty, MemRefType)
    index = linear_index(AffineMap(m.num_dims, 0, tuple(exprs)), index_strides(ty))
    return ElementAccess(buffer, index, ty.element_type, tuple(guards), fill)


class _Group:
    """A nest whose stages are being collected."""

    def __init__(self, g: Generic, pads: Mapping[SSAValue, _Pad], fills: Mapping[SSAValue, Attribute]) -> None:
        self.dims = [LoopDim(e, k == "r") for e, k in zip(g.extents, g.iterators, strict=True)]
        self._bounds = tile_bounds(g.op)
        self._out_maps: list[tuple[SSAValue, AffineMap]] = []
        self.stages: list[Stage] = []
        self._written: dict[SSAValue, tuple[Register, AffineMap]] = {}
        identity = {i: Linear(0, {i: 1}) for i in range(len(self.dims))}
        inits = tuple(fills.get(o.buffer) if g.reduces else None for o in g.outs)
        reads = tuple(_access(o.buffer, o.map, pads) if o.scalar.uses else None for o in g.ins)
        self._append(g, reads, identity, inits, [o.map for o in g.outs])

    def _append(
        self,
        g: Generic,
        reads: tuple[ElementAccess | Register | None, ...],
        dims: Mapping[int, Linear],
        inits: tuple[Attribute | None, ...],
        out_maps: list[AffineMap],
    ) -> None:
        n = len(self.stages)
        writes = []
        for i, (o, m) in enumerate(zip(g.outs, out_maps, strict=True)):
            writes.append(_access(o.buffer, m, {}))
            self._out_maps.append((o.buffer, m))
            self._written[o.buffer] = (Register(n, i), m)
        self.stages.append(Stage(g.body, reads, tuple(writes), (True,) * len(writes), inits, dims, g.reduces))

    @property
    def outputs(self) -> Iterable[SSAValue]:
        """Returns the buffers that this nest writes."""
        return self._written.keys()

    def join(self, g: Generic, pads: Mapping[SSAValue, _Pad], in_parts: Container[SSAValue]) -> bool:
        """Append ``g`` if it runs over the points that this nest writes and reads each of them in place; returns
        whether it did.

        Earlier nests write the buffers ``in_parts``, so that this nest writes only some of the elements that ``g``
        reads.
        """
        if not g.elementwise:
            return False
        forwarded = [o for o in g.ins if o.buffer in self._written]
        if not forwarded or any(o.buffer in in_parts or not is_identity(o.map, g.extents) for o in forwarded):
            return False
        written = [e for o in forwarded for e in zip(shape_of(o.buffer.type), g.extents, strict=True)]
        if any(same(extent, points) is not True for extent, points in written):
            return False  # the last nest writes only the first elements
        maps = {self._written[o.buffer][1] for o in forwarded}
        if len(maps) != 1:
            return False
        out_map = maps.pop()
        if len(out_map.results) != len(g.extents):
            return False
        if any(o.buffer in pads and pads[o.buffer].source in self._written for o in g.ins):
            return False
        if any(buffer in self._written for buffer in loaded_buffers(g.body)):
            return False
        dims = {i: linearize(e) for i, e in enumerate(out_map.results)}
        reads: list[ElementAccess | Register | None] = []
        for o in g.ins:
            if not o.scalar.uses:
                reads.append(None)
            elif o.buffer in self._written:
                reads.append(self._written[o.buffer][0])
            else:
                reads.append(rename_access(_access(o.buffer, o.map, pads), dims))
        self._append(g, tuple(reads), dims, (None,), [o.map.compose(out_map) for o in g.outs])
        return True

    def memory_reads(self) -> list[SSAValue]:
        """Returns the buffers that this nest reads from memory."""
        at_points = [r.buffer for s in self.stages for r in s.reads if isinstance(r, ElementAccess)]
        return at_points + [buffer for s in self.stages for buffer in loaded_buffers(s.body)]

    def nest(self, visible: object) -> Nest:
        """Returns the finished nest; a temporary that no other nest reads is not stored."""
        assert callable(visible)
        stages = [
            Stage(
                s.body, s.reads, s.writes, tuple(bool(visible(w.buffer)) for w in s.writes), s.inits, s.dims, s.reduces
            )
            for s in self.stages
        ]
        visible_maps = [(o, m) for o, m in self._out_maps if visible(o)]
        bounds = [
            Bound(outer, inner, tile, extent, all(self._fits(m, o, (outer, inner)) for o, m in visible_maps))
            for outer, inner, tile, extent in self._bounds
        ]
        return Nest(self.dims, stages, bounds)

    def _fits(self, m: AffineMap, buffer: SSAValue, cut: Sequence[int]) -> bool:
        """Returns whether every axis of ``buffer`` that ``m`` indexes by the loops ``cut`` is long enough for whole
        tiles.
        """
        for e, size in zip(m.results, shape_of(buffer.type), strict=True):
            if not e.used_dims().isdisjoint(cut):
                index = linearize(e)
                last = index.const + sum(c * (self.dims[d].extent - 1) for d, c in index.coeffs.items())
                if index.rest or at_least(size - 1, last) is not True:
                    return False
        return True


def scalar_attr(attr: Attribute) -> float | int:
    """Returns the Python number of a scalar constant attribute."""
    if isinstance(attr, FloatAttr | IntegerAttr):
        return attr.value.data
    raise CodegenError(f"{attr} is not a scalar constant")
