"""Read-only view of a PrimFunc as a sequence of stages, for passes that reason about loops."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith, func, linalg, memref
from xdsl.dialects.builtin import AffineMapAttr
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from landbridge.ir.kernel_attributes import loop_extents
from landbridge.ir.length_ops import LengthOp
from landbridge.ir.prim_ops import ForallOp, PadOp, StepsOp
from landbridge.ir.segments import OPERAND_SEGMENTS, first_segment
from landbridge.records import record


@record(frozen=True)
class Operand:
    """A memref and the map from loop indices to its indices; ``scalar`` is its block argument in the body."""

    buffer: SSAValue
    map: AffineMap
    scalar: BlockArgument


@record(frozen=True)
class Generic:
    """A ``linalg.generic``: loop bounds, iterator letters ("p"/"r"), operands and the scalar body."""

    op: linalg.ops.GenericOp
    extents: tuple[int, ...]
    iterators: str
    ins: tuple[Operand, ...]
    outs: tuple[Operand, ...]

    @property
    def body(self) -> Block:
        """Returns the scalar body, which ends in ``linalg.yield``."""
        return self.op.regions[0].block

    @property
    def reduces(self) -> bool:
        """Returns whether any loop is a reduction."""
        return "r" in self.iterators

    @property
    def elementwise(self) -> bool:
        """Returns whether all loops are parallel and the one output is written at the loop indices themselves."""
        return not self.reduces and len(self.outs) == 1 and is_identity(self.outs[0].map, self.extents)


def is_identity(m: AffineMap, extents: tuple[int, ...]) -> bool:
    """Returns whether ``m`` is ``(d0, .., dn) -> (d0, .., dn)``; a 0 where the extent is 1 counts."""
    return m.num_dims == len(m.results) and all(
        (isinstance(e, AffineDimExpr) and e.position == i)
        or (isinstance(e, AffineConstantExpr) and e.value == 0 and extents[i] == 1)
        for i, e in enumerate(m.results)
    )


def view_generic(op: linalg.ops.GenericOp) -> Generic:
    """Returns the Generic view of ``op``, which must carry ``lb.extents``."""
    maps = [a.data for a in op.indexing_maps.data if isinstance(a, AffineMapAttr)]
    operands = [Operand(b, m, a) for b, m, a in zip(op.operands, maps, op.regions[0].block.args, strict=True)]
    inputs = first_segment(op.properties[OPERAND_SEGMENTS])
    return Generic(
        op,
        loop_extents(op),
        "".join("r" if t.data is IteratorType.REDUCTION else "p" for t in op.iterator_types.data),
        tuple(operands[:inputs]),
        tuple(operands[inputs:]),
    )


@record(frozen=True)
class PrimView:
    """A PrimFunc: its function, arguments, temporaries, and stages (generic, fill, pad, steps, forall) in order."""

    function: func.FuncOp
    temporaries: tuple[SSAValue, ...]
    stages: tuple[Operation, ...]

    def generics(self) -> Iterator[Generic]:
        """Yields the generic stages in order, also those that are iterated."""
        for op in self.stages:
            if isinstance(op, linalg.ops.GenericOp):
                yield view_generic(op)
            elif isinstance(op, StepsOp):
                yield from PrimView(self.function, (), _stages(op.body.block)).generics()

    @property
    def is_iterated(self) -> bool:
        """Returns whether stages are iterated: such a PrimFunc runs as written, and is neither fused nor blocked."""
        return any(isinstance(op, StepsOp) for op in self.stages)

    @property
    def forall(self) -> ForallOp | None:
        """Returns its only stage if that is scalar code with loops of its own; None for other PrimFuncs."""
        first = self.stages[0] if self.stages else None
        return first if isinstance(first, ForallOp) else None

    @property
    def has_own_order(self) -> bool:
        """Returns whether it runs as written, and is neither fused nor blocked nor cut."""
        return self.is_iterated or self.forall is not None

    def sections(self) -> Iterator[tuple[StepsOp | None, PrimView]]:
        """Yields the stages in runs: iterated ones with their ``lb.steps``, those before, between and after with
        None."""
        straight: list[Operation] = []
        for op in self.stages:
            if isinstance(op, StepsOp):
                yield None, PrimView(self.function, self.temporaries, tuple(straight))
                yield op, PrimView(self.function, (), _stages(op.body.block))
                straight = []
            else:
                straight.append(op)
        yield None, PrimView(self.function, self.temporaries, tuple(straight))


def view_prim(function: func.FuncOp) -> PrimView:
    """Returns the stages of a PrimFunc."""
    block = function.body.block
    temporaries = tuple(op.memref for op in block.ops if isinstance(op, memref.AllocOp))
    return PrimView(function, temporaries, _stages(block))


def _stages(block: Block) -> tuple[Operation, ...]:
    stages = []
    for op in block.ops:
        if isinstance(op, linalg.ops.GenericOp | linalg.ops.FillOp | PadOp | StepsOp | ForallOp):
            stages.append(op)
        elif not isinstance(op, memref.AllocOp | arith.ConstantOp | LengthOp | func.ReturnOp):
            raise TypeError(f"{op.name} is not a stage of a PrimFunc")
    if len(stages) > 1 and any(isinstance(op, ForallOp) for op in stages):
        raise TypeError("lb.forall is the one stage of its PrimFunc; put others in PrimFuncs of their own")
    return tuple(stages)
