"""Moving tensors to their places, with ``lb.to_vdevice`` where they cross.

A kernel writes its results where they are wanted and reads its operands where they are, in any scope of its own
vdevice. Everything else works in one place: what is elsewhere is carried to the global scope first.
"""

from __future__ import annotations

from xdsl.dialects import bufferization, func
from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from landbridge.errors import InputError, PlacementError
from landbridge.ir.graph_ops import CallOp, ConcatOp, ConstantOp, HostCallOp, IfOp, ToVDeviceOp, ViewOp
from landbridge.ir.module import IRModule
from landbridge.ir.types import VDeviceAttr, shape_of, vdevice_of
from landbridge.memory_kind import GLOBAL_SCOPE
from landbridge.passes.bufferize import io_names
from landbridge.passes.place.requests import Requests, node_name
from landbridge.physical_shape import check_axis_separators


def move(module: IRModule, requests: Requests) -> None:
    """Give every tensor of @main the place that ``requests`` has for it; raises PlacementError where none can be."""
    _Mover(module, requests).run()


class _Mover:
    def __init__(self, module: IRModule, requests: Requests) -> None:
        self.module = module
        self.block = module.main.body.block
        self.requests = requests
        self.crossings: dict[tuple[SSAValue, VDeviceAttr], SSAValue] = {}

    def run(self) -> None:
        self.constants()
        self.inputs()
        for op in list(self.block.ops):
            if isinstance(op, bufferization.AllocTensorOp | ConstantOp | ToVDeviceOp):
                continue
            place = self.place_of(op)
            for inner in op.walk():
                for i, operand in enumerate(inner.operands):
                    if isinstance(operand.owner, bufferization.AllocTensorOp):
                        self.retype(operand, place, op)
                    elif _block_of(operand) is self.block:
                        inner.operands[i] = self.cross(operand, self.read_from(operand, op, place), op)
            for result in op.results:
                self.retype(result, place, op)

    def constants(self) -> None:
        for op in self.block.ops:
            if isinstance(op, ConstantOp):
                place = self.requests.of_constant(op.symbol.root_reference.data)
                if place is not None:
                    self.retype(op.result, place, op)

    def inputs(self) -> None:
        """Inputs arrive in ordinary memory; one that is wanted elsewhere is carried there once, for all its users."""
        first = self.block.first_op
        for argument, name in zip(self.block.args, io_names(self.module.main)[0], strict=True):
            place = self.requests.of_input(name)
            if place is None or first is None or place == vdevice_of(argument.type):
                continue
            op = self.crossing(argument, place, f"input {name}")
            argument.replace_uses_with_if(op.results[0], lambda use, op=op: use.operation is not op)  # type: ignore[misc]
            self.block.insert_op_before(op, first)

    def place_of(self, op: Operation) -> VDeviceAttr:
        """Where the results of an operation are: where they were asked to be, else where its operands are."""
        match op:
            case CallOp():
                place = self.requests.of_node(op)
                return VDeviceAttr.of(place.index.data) if _is_inner(op) else place
            case HostCallOp():
                place = self.requests.of_node(op)
                if place.scope.data != GLOBAL_SCOPE:
                    raise PlacementError(
                        f"node {node_name(op)!r} runs on the host and cannot write scope {place.scope.data!r}; "
                        f"legal: {GLOBAL_SCOPE!r}; place the nodes that read its results instead"
                    )
                return place
            case IfOp() | func.ReturnOp():
                return VDeviceAttr.of()
            case _:
                place = vdevice_of(op.operands[0].type)
                alone = isinstance(op, ViewOp) or all(vdevice_of(v.type) == place for v in op.operands)
                in_order = not place.axis_separators or (
                    isinstance(op, ConcatOp | ViewOp) and shape_of(op.operands[0].type) == shape_of(op.results[0].type)
                )
                return place if alone and in_order else VDeviceAttr.of(place.index.data)

    def read_from(self, value: SSAValue, op: Operation, place: VDeviceAttr) -> VDeviceAttr:
        """Where ``op``, whose results are in ``place``, can read ``value``."""
        found = vdevice_of(value.type)
        if isinstance(op, CallOp):
            return found if found.index == place.index else VDeviceAttr.of(place.index.data)
        return place

    def cross(self, value: SSAValue, place: VDeviceAttr, before: Operation) -> SSAValue:
        """``value`` in ``place``; one crossing serves all later users."""
        if vdevice_of(value.type) == place:
            return value
        if (value, place) not in self.crossings:
            op = self.crossing(value, place, f"to_vdevice {place.index.data}")
            self.block.insert_op_before(op, before)
            self.crossings[value, place] = op.results[0]
        return self.crossings[value, place]

    def crossing(self, value: SSAValue, place: VDeviceAttr, name: str) -> Operation:
        ty = self.type_on(value.type, place, name)
        if isinstance(value.owner, ConstantOp):
            return ConstantOp(value.owner.symbol.root_reference.data, ty)
        op = ToVDeviceOp(value, ty)
        op.attributes["node"] = StringAttr(name)
        return op

    def retype(self, value: SSAValue, place: VDeviceAttr, op: Operation) -> None:
        ty = self.type_on(value.type, place, node_name(op))
        if ty != value.type:
            Rewriter.replace_value_with_new_type(value, ty)

    def type_on(self, ty: Attribute, place: VDeviceAttr, name: str) -> Attribute:
        """A tensor type with its encoding; raises PlacementError where the space cannot hold such a tensor."""
        if not isinstance(ty, TensorType):
            return ty
        try:
            check_axis_separators(place.axis_separators, len(shape_of(ty)))
        except InputError as error:
            raise PlacementError(f"tensor {name!r} in scope {place.scope.data!r}: {error}") from error
        return TensorType(ty.element_type, ty.shape, place)


def _is_inner(op: CallOp) -> bool:
    """Whether the node that ``op`` is part of goes on: what the node gives comes from another call."""
    name, pending = node_name(op), list(op.res)
    users: list[Operation] = []
    while name and pending:
        for use in pending.pop().uses:
            if isinstance(use.operation, ViewOp):
                pending.append(use.operation.result)
            else:
                users.append(use.operation)
    return bool(users) and all(isinstance(user, CallOp) and node_name(user) == name for user in users)


def _block_of(value: SSAValue) -> Block | None:
    return value.owner if isinstance(value.owner, Block) else value.owner.parent
