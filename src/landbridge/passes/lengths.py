"""Lengths that lie in memory of a device: each kernel that depends on one gets it as an operand.

The host knows only the capacity. Kernels for a grid of workgroups load the length, and their loops end there. All other
kernels compute the whole capacity, and what a mask leaves out costs time alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import bufferization, func
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from landbridge.ir.graph_ops import CallOp, ViewOp
from landbridge.ir.length_ops import LengthOp, has_lengths, is_length
from landbridge.ir.module import IRModule
from landbridge.ir.op_attributes import node_name
from landbridge.ir.replaced_sizes import replace_sizes, sizes_in
from landbridge.ir.reserved_lengths import read_whole
from landbridge.ir.stages import view_prim
from landbridge.ir.traversal import all_operations, operations
from landbridge.ir.types import dtype_of, memref_type, shape_of, vdevice_of
from landbridge.memory_kind import GLOBAL_SCOPE
from landbridge.passes.registry import register_pass
from landbridge.sizes.replaced import replaced
from landbridge.sizes.size import Extent, Size, dimensions_of, same


@register_pass("lengths")
def lengths(module: IRModule) -> None:
    """Let kernels load the lengths that their sizes depend on; where one cannot, all compute the whole capacity."""
    block = module.main.body.block
    _unify(module, [op for op in operations(block) if isinstance(op, LengthOp)])
    found = {op.dimension.name: op for op in operations(block) if isinstance(op, LengthOp)}
    if not found:
        return
    prims = module.prims()
    used = {name: names for name, prim in prims.items() if (names := _lengths_of(prim))}
    defined: set[SSAValue] = set(block.args)
    for op in operations(block):
        if not _is_legal(module, op, prims, used, found, defined):
            read_whole(module)
            return
        defined.update(op.results)
    for name, names in used.items():
        _take(prims[name], [found[each] for each in names], _input_count(block, name))
    for op in operations(block):
        if isinstance(op, CallOp) and op.callee_name in used:
            _give(op, [found[each].value for each in used[op.callee_name]])
    for op in found.values():
        Rewriter.erase_op(op)


def _unify(module: IRModule, every: list[LengthOp]) -> None:
    """Make lengths one that are the same tensor: layers that read one length have the same kernels."""
    first: dict[SSAValue, LengthOp] = {}
    same_as: dict[str, Extent] = {}
    for op in every:
        if (other := first.setdefault(op.value, op)) is not op:
            same_as[op.dimension.name] = other.size.data
            Rewriter.erase_op(op)

    def extent(of: Extent) -> Extent:
        return replaced(of.terms, same_as) if isinstance(of, Size) and not same_as.keys().isdisjoint(of.symbols) else of

    if same_as:
        replace_sizes(module, extent)


def _lengths_of(function: func.FuncOp) -> list[str]:
    """Returns the lengths that sizes of a PrimFunc depend on, sorted."""
    names: set[str] = set()
    for op in all_operations(function):
        attributes = [*op.attributes.values(), *op.properties.values(), *(result.type for result in op.results)]
        names.update(n for a in attributes for n in dimensions_of(_sizes(a)) if is_length(n))
    return sorted(names)


def _sizes(attribute: object) -> Iterator[Size]:
    return (extent for extent in sizes_in(attribute) if isinstance(extent, Size))  # type: ignore[arg-type]


def _is_legal(
    module: IRModule,
    op: Operation,
    prims: dict[str, func.FuncOp],
    used: dict[str, list[str]],
    found: dict[str, LengthOp],
    defined: set[SSAValue],
) -> bool:
    """Returns whether ``op`` may have buffers that are filled up to a length, in memory for the whole capacity.

    All that reads or writes such a buffer must begin with its first element, and know its length. ``defined`` are the
    values before ``op``.
    """
    if isinstance(op, LengthOp):
        return True
    values = [*op.operands, *op.results]
    is_sized = any(has_lengths(_sizes(value.type)) for value in values)
    is_sized = is_sized or any(has_lengths(_sizes(each)) for each in op.attributes.values())
    if isinstance(op, CallOp) and op.callee_name in used:
        known = [found[name].value for name in used[op.callee_name]]
        places = {vdevice_of(value.type) for value in (*values, *known)}
        is_grid = module.target_of(vdevice_of(op.destinations[0].type).index.data).form == "grid"
        in_memory = all(place.scope.data == GLOBAL_SCOPE for place in places)
        computes = view_prim(prims[op.callee_name]).forall is None
        return is_grid and in_memory and computes and len(places) == 1 and defined.issuperset(known)
    if isinstance(op, ViewOp):
        return not is_sized or same(op.first, 0) is True
    return not is_sized or isinstance(op, bufferization.AllocTensorOp)


def _input_count(block: Block, callee: str) -> int:
    return next(op.input_count for op in operations(block) if isinstance(op, CallOp) and op.callee_name == callee)


def _take(function: func.FuncOp, lengths: list[LengthOp], inputs: int) -> None:
    """Give a PrimFunc the values of ``lengths`` as operands after its ``inputs``."""
    block = function.body.block
    first = block.first_op
    assert first is not None
    for number, length in enumerate(lengths, inputs):
        of = length.value.type
        ty = memref_type(shape_of(of), dtype_of(of), vdevice_of(of).space)
        block.insert_op_before(LengthOp(block.insert_arg(ty, number), length.size.data), first)
    function.properties["function_type"] = FunctionType.from_lists(
        list(block.arg_types), list(function.function_type.outputs)
    )


def _give(op: CallOp, values: list[SSAValue]) -> None:
    """Give a call the ``values`` as its last inputs."""
    call = CallOp(
        op.callee_name,
        [*op.inputs, *values],
        list(op.destinations),
        [result.type for result in op.res],
        node_name(op),
    )
    Rewriter.replace_op(op, call)
