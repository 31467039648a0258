"""Moves tensors to their placements, with ``lb.to_vdevice`` where they cross.

A kernel writes its results into their destinations and reads its operands in place, in any scope of its own vdevice.
All other operations work in one scope: operands elsewhere cross to the global scope first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from xdsl.dialects import bufferization, func
from xdsl.dialects.builtin import FunctionType, TensorType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import Rewriter

from landbridge.analysis.free_rows import has_free_rows
from landbridge.errors import InputError, PlacementError
from landbridge.ir.graph_ops import CallOp, ConcatOp, ConstantOp, HostCallOp, IfOp, LoopOp, ToVDeviceOp, ViewOp, viewed
from landbridge.ir.main_attributes import frame_layouts, io_names
from landbridge.ir.module import IRModule
from landbridge.ir.op_attributes import node_name, set_node_name
from landbridge.ir.traversal import operations
from landbridge.ir.types import VDeviceAttr, shape_of, vdevice_of
from landbridge.memory_kind import GLOBAL_SCOPE
from landbridge.passes.rewrites import rewrite
from landbridge.shapes.physical import check_axis_separators

VDeviceOf: TypeAlias = Callable[[CallOp | HostCallOp], VDeviceAttr]


@rewrite("place.node", "a node computes on the vdevice that was requested, and its operands cross to it")
def move(module: IRModule, vdevice_of_node: VDeviceOf) -> None:
    """Give every tensor of @main the placement that ``vdevice_of_node`` returns for its call.

    Raises PlacementError where that is impossible.
    """
    _Mover(module, vdevice_of_node).run()


@rewrite("place.argument", "an input or output is placed where it was requested")
def move_arguments(module: IRModule, places: Mapping[str, VDeviceAttr]) -> None:
    """Place inputs and outputs at ``places``, by name, where a Session can bind memory of the first vdevice.

    Other inputs cross to their placement once, for all users.
    """
    main, block = module.main, module.main.body.block
    inputs, outputs = io_names(main)
    first = block.first_op
    framed = frame_layouts(main).keys() | module.parameters.keys()
    for argument, name in zip(list(block.args), inputs, strict=True):
        vdevice = places.get(name)
        if vdevice is None or first is None or vdevice == vdevice_of(argument.type):
            continue
        if name not in framed and _may_be_bound_in(module, vdevice):
            _retype(argument, vdevice, f"input {name}")
            continue
        op = _crossing(argument, vdevice, f"input {name}")
        argument.replace_uses_with_if(op.results[0], lambda use, op=op: use.operation is not op)  # type: ignore[misc]
        block.insert_op_before(op, first)
    results = list(main.function_type.outputs)
    for i, name in enumerate(outputs):
        vdevice = places.get(name)
        if vdevice is not None and _may_be_bound_in(module, vdevice):
            results[i] = _type_on(results[i], vdevice, f"output {name}")
    main.properties["function_type"] = FunctionType.from_lists([argument.type for argument in block.args], results)


def _may_be_bound_in(module: IRModule, vdevice: VDeviceAttr) -> bool:
    """Returns whether a Session's inputs and outputs can lie in ``vdevice``."""
    if vdevice.index.data != 0 or has_free_rows(module, vdevice):
        return False
    target = module.target_of(0)
    return target.on_host or (target.form == "grid" and bool(vdevice.axis_separators))


@rewrite("place.constant", "a constant is placed where it was requested")
def move_constants(module: IRModule, location_of: Callable[[str], VDeviceAttr | None]) -> None:
    """Move constants to the placement that ``location_of`` returns for their symbol, if any."""
    for op in module.main.body.block.ops:
        if isinstance(op, ConstantOp):
            vdevice = location_of(op.symbol_name)
            if vdevice is not None:
                _retype(op.result, vdevice, op.symbol_name)


class _Mover:
    def __init__(self, module: IRModule, vdevice_of_node: VDeviceOf) -> None:
        self.module = module
        self.block = module.main.body.block
        self.returned = [vdevice_of(ty) for ty in module.main.function_type.outputs]
        self.vdevices = [vdevice.name for vdevice in module.vdevices]
        self.vdevice_of_node = vdevice_of_node
        self.crossings: dict[tuple[SSAValue, VDeviceAttr], SSAValue] = {}

    def run(self) -> None:
        for op in operations(self.block):
            if isinstance(op, bufferization.AllocTensorOp | ConstantOp | ToVDeviceOp):
                continue
            vdevice = self.location_of(op)
            for inner in op.walk():
                for i, operand in enumerate(inner.operands):
                    if isinstance(operand.owner, bufferization.AllocTensorOp):
                        _retype(operand, vdevice, node_name(op))
                    elif inner is op and isinstance(op, func.ReturnOp):
                        op.operands[i] = self.cross(operand, self.returned[i], op)
                    elif _block_of(operand) is self.block:
                        inner.operands[i] = self.cross(operand, self.read_from(operand, op, vdevice), op)
                for given in (a for region in inner.regions for a in region.block.args):
                    _retype(given, vdevice, node_name(op))
                for result in inner.results:
                    _retype(result, vdevice, node_name(op))

    def location_of(self, op: Operation) -> VDeviceAttr:
        """Returns the placement of an operation's results: the requested one, else that of its operands."""
        match op:
            case CallOp():
                return self.vdevice_of_node(op)
            case HostCallOp():
                vdevice = self.vdevice_of_node(op)
                if vdevice.scope.data != GLOBAL_SCOPE:
                    raise PlacementError(
                        f"node {node_name(op)!r} runs on the host and cannot write scope {vdevice.scope.data!r}; "
                        f"legal: {GLOBAL_SCOPE!r}; place the nodes that read its results instead"
                    )
                return vdevice
            case IfOp() | LoopOp() | func.ReturnOp():
                return VDeviceAttr.of()
            case _:
                vdevice = vdevice_of(op.operands[0].type)
                alone = isinstance(op, ViewOp) or all(vdevice_of(v.type) == vdevice for v in op.operands)
                is_flat = not vdevice.axis_separators and not has_free_rows(self.module, vdevice)
                in_order = is_flat or (
                    isinstance(op, ConcatOp | ViewOp) and shape_of(op.operands[0].type) == shape_of(op.results[0].type)
                )
                return vdevice if alone and in_order else VDeviceAttr.of(vdevice.index.data)

    def read_from(self, value: SSAValue, op: Operation, vdevice: VDeviceAttr) -> VDeviceAttr:
        """Returns a placement from which ``op``, whose results are in ``vdevice``, can read ``value``."""
        found = vdevice_of(value.type)
        if isinstance(op, CallOp):
            return found if found.index == vdevice.index else VDeviceAttr.of(vdevice.index.data)
        return vdevice

    def cross(self, value: SSAValue, vdevice: VDeviceAttr, before: Operation) -> SSAValue:
        """Returns ``value`` in ``vdevice``; one crossing serves all later users."""
        if vdevice_of(value.type) == vdevice:
            return value
        if (value, vdevice) not in self.crossings:
            op = _crossing(value, vdevice, f"{_maker(value)} to {self.vdevices[vdevice.index.data]}")
            self.block.insert_op_before(op, before)
            self.crossings[value, vdevice] = op.results[0]
        return self.crossings[value, vdevice]


def _maker(value: SSAValue) -> str:
    """Returns the name of a value for messages: the node it comes from."""
    value = viewed(value)
    if isinstance(value, BlockArgument):
        return f"input {value.index}"
    return (isinstance(value.owner, Operation) and node_name(value.owner)) or "a tensor"


def _crossing(value: SSAValue, vdevice: VDeviceAttr, name: str) -> Operation:
    ty = _type_on(value.type, vdevice, name)
    if isinstance(value.owner, ConstantOp):
        return ConstantOp(value.owner.symbol_name, ty)
    op = ToVDeviceOp(value, ty)
    set_node_name(op, name)
    return op


def _retype(value: SSAValue, vdevice: VDeviceAttr, name: str) -> None:
    ty = _type_on(value.type, vdevice, name)
    if ty != value.type:
        Rewriter.replace_value_with_new_type(value, ty)


def _type_on(ty: Attribute, vdevice: VDeviceAttr, name: str) -> Attribute:
    """Returns a tensor type with its encoding; raises PlacementError if the space cannot hold such a tensor."""
    if not isinstance(ty, TensorType):
        return ty
    try:
        check_axis_separators(vdevice.axis_separators, len(shape_of(ty)))
    except InputError as error:
        raise PlacementError(f"tensor {name!r} in scope {vdevice.scope.data!r}: {error}") from error
    return TensorType(ty.element_type, ty.shape, vdevice)


def _block_of(value: SSAValue) -> Block | None:
    return value.owner if isinstance(value.owner, Block) else value.owner.parent
