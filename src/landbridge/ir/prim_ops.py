"""Operations of PrimFunc bodies in addition to those of xdsl's dialects."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, linalg
from xdsl.dialects.arith import FloatingPointLikeBinaryOperation
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, IndexType, MemRefType, UnitAttr, VectorType, i32
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import (
    IRDLOperation,
    attr_def,
    irdl_op_definition,
    operand_def,
    opt_attr_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import IsolatedFromAbove, NoTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from landbridge.ir.kernel_attributes import EXTENTS, loop_extents, tile_bounds
from landbridge.ir.plain_attributes import int_array, int_attr, int_of
from landbridge.ir.segments import OPERAND_SEGMENTS, segments
from landbridge.ir.types import SizeAttr, shape_of
from landbridge.sizes.size import Extent, Size, at_least, same


class GenericOp(linalg.ops.GenericOp):
    """A ``linalg.generic`` whose loop bounds are declared in ``lb.extents``, not inferred from its operands.

    The window loops of a pool index no operand by themselves, and the last tile of a loop that was cut in two may not
    be full.
    """

    @classmethod
    def over(
        cls,
        inputs: Sequence[SSAValue],
        outputs: Sequence[SSAValue],
        body: Region,
        indexing_maps: Sequence[AffineMapAttr] | ArrayAttr[AffineMapAttr],
        iterator_types: Sequence[Attribute] | ArrayAttr[Attribute],
    ) -> GenericOp:
        """Returns a generic of these operands, made without xdsl's slow search of the operation's definition."""
        return cls.create(
            operands=[*inputs, *outputs],
            properties={
                "indexing_maps": ArrayAttr(indexing_maps),
                "iterator_types": ArrayAttr(iterator_types),
                OPERAND_SEGMENTS: segments(len(inputs), len(outputs)),
            },
            regions=[body],
        )

    def get_loops_to_shapes_map(self) -> AffineMap:
        """Returns an empty map: no loop bound is inferred."""
        return AffineMap.identity(len(self.iterator_types))

    def get_static_shapes(self) -> list[int]:
        """Returns unknown shapes for linalg.generic's verifier; ``verify_`` checks the real ones."""
        return [-1]

    def verify_(self) -> None:
        super().verify_()
        if EXTENTS not in self.attributes:
            raise VerifyException(f"a linalg.generic must state {EXTENTS}, the bounds of its loops")
        extents = loop_extents(self)
        if len(extents) != len(self.iterator_types) or any(at_least(extent, 0) is not True for extent in extents):
            raise VerifyException(f"{EXTENTS} {extents} are not bounds of {len(self.iterator_types)} loops")
        cut = self._cut_loops(extents)
        self._verify_results()
        if 0 in extents:
            return
        last = [extent - 1 for extent in extents]
        for number, (operand, declared) in enumerate(zip(self.operands, self.indexing_maps, strict=True)):
            for expr, size in zip(declared.data.results, shape_of(operand.type), strict=True):
                if not cut.isdisjoint(expr.used_dims()):
                    continue
                ends = expr.eval([0] * len(last), []), expr.eval(last, [])
                if not all(at_least(end, 0) and at_least(size, end + 1) for end in ends):
                    raise VerifyException(
                        f"operand {number} of a linalg.generic has {size} elements along an axis where its loops "
                        f"reach {ends[0]} to {ends[1]}"
                    )

    def _verify_results(self) -> None:
        """Raises VerifyException if the body yields another type than an output's elements have."""
        end = self.body.block.last_op
        given = [v.type for v in end.operands] if isinstance(end, linalg.ops.YieldOp) else []
        wanted = [output.type.element_type for output in self.outputs if isinstance(output.type, MemRefType)]
        if given != wanted:
            raise VerifyException(
                f"the body of a linalg.generic gives {', '.join(map(str, given)) or 'nothing'} for outputs of "
                f"{', '.join(map(str, wanted))}"
            )

    def _cut_loops(self, extents: Sequence[int]) -> set[int]:
        """Returns the outer loops of those that were cut in two and whose last tile is not full."""
        bounds = tile_bounds(self)
        for outer, inner, tile, extent in bounds:
            if not (0 <= outer < len(extents) and 0 <= inner < len(extents) and tile == extents[inner]):
                raise VerifyException(f"lb.bounds {[outer, inner, tile, extent]} name no loops of {extents}")
            if not (extents[outer] - 1) * tile < extent <= extents[outer] * tile:
                raise VerifyException(f"lb.bounds {[outer, inner, tile, extent]} end in no last tile of {extents}")
        return {outer for outer, *_ in bounds}


@irdl_op_definition
class PadOp(IRDLOperation):
    """Writes ``source`` to ``destination`` with ``low[i]`` elements of ``value`` before it along axis i.

    Elements after it, up to the destination's shape, are ``value`` too. Lowering folds it into the reads of its one
    consumer where it can.
    """

    name = "lb.pad"
    low = attr_def(ArrayAttr)
    value = attr_def(Attribute)
    source = operand_def()
    destination = operand_def()

    def __init__(self, source: SSAValue, destination: SSAValue, low: Sequence[Extent], value: Attribute) -> None:
        super().__init__(operands=[source, destination], attributes={"low": int_array(low), "value": value})


@irdl_op_definition
class StepsOp(IRDLOperation):
    """Runs its stages ``count`` times: in iteration t each of them, in order, runs at t of its first loop.

    A stage may read what an earlier iteration wrote: so a recurrent layer is one kernel. The arguments of the region
    stand for ``buffers``; in it are ``linalg.generic``, each with a first loop of ``count`` that is no reduction,
    ``linalg.fill`` before a reduction, which is done in every iteration, and constants.
    """

    name = "lb.steps"
    count = attr_def(Attribute)
    buffers = var_operand_def()
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), IsolatedFromAbove())

    def __init__(self, count: Extent, buffers: Sequence[SSAValue], body: Region) -> None:
        super().__init__(operands=[list(buffers)], attributes={"count": int_attr(count)}, regions=[body])

    @property
    def iterations(self) -> int:
        """Returns the number of iterations."""
        return int_of(self.count)

    def argument_for(self, number: int) -> SSAValue:
        """Returns the argument of the region that stands for buffer ``number``."""
        return self.body.block.args[number]

    def verify_(self) -> None:
        inside = self.body.block
        if [a.type for a in inside.args] != [b.type for b in self.buffers]:
            raise VerifyException("the arguments of the stages of lb.steps are not of the types of its buffers")
        for op in inside.ops:
            if isinstance(op, GenericOp):
                first = op.iterator_types.data[0].data if op.iterator_types.data else None
                if first is not IteratorType.PARALLEL or not same(loop_extents(op)[0], self.iterations):
                    raise VerifyException(
                        f"a stage of lb.steps begins with a loop of {self.iterations} iterations that is not a "
                        "reduction"
                    )
            elif not isinstance(op, linalg.ops.FillOp | arith.ConstantOp):
                raise VerifyException(f"{op.name} is not a stage of lb.steps; legal: linalg.generic, linalg.fill")


#: Prefixes of the names of operations that a ForallOp may hold, and its other operations.
_SCALAR = ("arith.", "math.", "scf.")
_MEMORY = ("memref.load", "memref.store", "linalg.fill", "lb.size")


@irdl_op_definition
class ForallOp(IRDLOperation):
    """Runs independent iterations of scalar code with loops and branches of its own; it is the only stage of its
    PrimFunc.

    ``lb.forall(%x, %y) ({^bb0(%i: index, %a: memref<8xf32>, %b: memref<8xf32>): ...}) {count = 8 : i64}``: iteration
    ``%i`` runs the region, whose other arguments stand for ``buffers``. Iterations may run at once and in any order,
    so none may write an element that another one reads or writes. Every iteration has its own copy of a temporary of
    the PrimFunc, which it writes before it reads. The region holds operations on scalars, ``memref.load`` and
    ``memref.store`` at indices that must be provably in bounds, ``linalg.fill`` of a whole buffer with a constant, and
    ``scf.for``, ``scf.if`` and ``scf.while``.
    """

    name = "lb.forall"
    count = attr_def(Attribute)
    buffers = var_operand_def()
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), IsolatedFromAbove())

    def __init__(self, count: Extent, buffers: Sequence[SSAValue], body: Region) -> None:
        super().__init__(operands=[list(buffers)], attributes={"count": int_attr(count)}, regions=[body])

    @property
    def iterations(self) -> int:
        """Returns the number of iterations."""
        return int_of(self.count)

    def argument_for(self, number: int) -> SSAValue:
        """Returns the argument of the region that stands for buffer ``number``."""
        return self.body.block.args[number + 1]

    def verify_(self) -> None:
        index, *inside = self.body.block.args
        if not isinstance(index.type, IndexType) or [a.type for a in inside] != [b.type for b in self.buffers]:
            raise VerifyException("the arguments of lb.forall are not an index and then of the types of its buffers")
        for op in self.body.walk():
            is_of_fill = isinstance(op.parent_op(), linalg.ops.FillOp)  # whose region defines the fill
            if not is_of_fill and not op.name.startswith(_SCALAR) and op.name not in _MEMORY:
                raise VerifyException(f"{op.name} is not legal in lb.forall; legal: scalar code, {', '.join(_MEMORY)}")


@irdl_op_definition
class SizeOp(IRDLOperation):
    """An integer that is known only at run time: ``lb.size {size = #lb.size<[W/4]>} : () -> i64``."""

    name = "lb.size"
    size = attr_def(Attribute)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, size: Size, ty: Attribute) -> None:
        super().__init__(attributes={"size": SizeAttr(size)}, result_types=[ty])


@irdl_op_definition
class ByteDotOp(IRDLOperation):
    """Sums four products of unsigned bytes of ``lhs`` and signed bytes of ``rhs``, for i32 or vectors of it.

    ``lb.byte_dot(%x, %w) : (i32, i32) -> i32``. The sum lies between -4 * 255 * 128 and 4 * 255 * 127: it is exact.
    """

    name = "lb.byte_dot"
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, lhs: SSAValue, rhs: SSAValue) -> None:
        super().__init__(operands=[lhs, rhs], result_types=[lhs.type])

    def verify_(self) -> None:
        ty = self.result.type
        element = ty.element_type if isinstance(ty, VectorType) else ty
        if element != i32 or any(v.type != ty for v in self.operands):
            raise VerifyException(
                f"lb.byte_dot of {self.lhs.type} and {self.rhs.type} to {ty}; legal: i32, or equal vectors of it"
            )


@irdl_op_definition
class PrefetchOp(IRDLOperation):
    """Prefetches the cache line of an element of ``buffer`` that will be read soon; the element may lie outside.

    ``lb.prefetch(%w, %i) : (memref<?xf32>, index) -> ()``. It changes nothing, and no access is proved for it. With
    ``beyond_l1`` the line comes into L2 only.
    """

    name = "lb.prefetch"
    buffer = operand_def()
    indices = var_operand_def()
    beyond_l1 = opt_attr_def(UnitAttr)

    def __init__(self, buffer: SSAValue, indices: Sequence[SSAValue]) -> None:
        super().__init__(operands=[buffer, list(indices)])


@irdl_op_definition
class OrderLoadsOp(IRDLOperation):
    """Keeps the loads before it before the loads after it, where the compiler of the code would exchange them.

    ``lb.order_loads() : () -> ()``. It takes no instruction.
    """

    name = "lb.order_loads"

    def __init__(self) -> None:
        super().__init__()


@irdl_op_definition
class RemFOp(FloatingPointLikeBinaryOperation):
    """Computes C's ``fmod``: ``lhs - n * rhs`` without error, n the quotient rounded towards zero.

    It is MLIR's operation, which xdsl lacks.
    """

    name = "arith.remf"
