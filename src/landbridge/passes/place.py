"""Place: where every tensor is.

Tensors start on vdevice 0. ``place_nodes`` records which nodes go elsewhere as the attribute ``lb.place`` of @main;
the pass moves their results there and puts ``lb.to_vdevice`` where a tensor crosses.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from xdsl.dialects import bufferization, func
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, StringAttr, TensorType, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from landbridge.errors import PlacementError
from landbridge.ir.graph_ops import CallOp, ConstantOp, HostCallOp, IfOp, ToVDeviceOp
from landbridge.ir.module import IRModule
from landbridge.ir.types import VDeviceAttr, vdevice_of
from landbridge.passes.registry import register_pass

#: Dictionary attribute of @main: node name patterns to numbers of vdevices.
PLACE = "lb.place"


def place_nodes(module: IRModule, wanted: Mapping[str, str]) -> None:
    """Ask for nodes to run elsewhere: ``{node name pattern: vdevice name}``, the first pattern that matches counts.

    Raises PlacementError for an unknown vdevice, and for a pattern that matches no node.
    """
    names = [v.name for v in module.vdevices]
    nodes = {_node(op) for op in module.main.walk() if isinstance(op, CallOp | HostCallOp)}
    for pattern, vdevice in wanted.items():
        if vdevice not in names:
            raise PlacementError(f"place={{{pattern!r}: {vdevice!r}}}: no such vdevice; legal: {', '.join(names)}")
        if not any(fnmatchcase(node, pattern) for node in nodes):
            some = ", ".join(sorted(nodes)[:8])
            raise PlacementError(f"place={{{pattern!r}: {vdevice!r}}} matches no node; nodes are: {some}, ...")
    if wanted:
        numbers = {pattern: IntegerAttr(names.index(vdevice), i64) for pattern, vdevice in wanted.items()}
        module.main.attributes[PLACE] = DictionaryAttr(numbers)


@register_pass("place")
def place(module: IRModule) -> None:
    """Move the nodes that ``lb.place`` names to their vdevices, with ``lb.to_vdevice`` at every crossing."""
    wanted = module.main.attributes.pop(PLACE, None)
    if isinstance(wanted, DictionaryAttr):
        _Mover(module, wanted).run()


class _Mover:
    """Moves results of nodes to the vdevice asked for, crossings included."""

    def __init__(self, module: IRModule, wanted: DictionaryAttr) -> None:
        self.block = module.main.body.block
        self.wanted = {
            pattern: number.value.data for pattern, number in wanted.data.items() if isinstance(number, IntegerAttr)
        }
        self.crossings: dict[tuple[SSAValue, int], SSAValue] = {}

    def run(self) -> None:
        for op in list(self.block.ops):
            if isinstance(op, bufferization.AllocTensorOp | ConstantOp | ToVDeviceOp):
                continue
            index = self.index_of(op)
            for inner in op.walk():
                for i, operand in enumerate(inner.operands):
                    if self.is_destination(operand):
                        _retype(operand, index)
                    elif _block_of(operand) is self.block:
                        inner.operands[i] = self.cross(operand, index, op)
            for result in op.results:
                _retype(result, index)

    def index_of(self, op: Operation) -> int:
        """The vdevice of an operation: what was asked, else where its first operand is, else 0."""
        if isinstance(op, CallOp | HostCallOp):
            node = _node(op)
            return next((n for pattern, n in self.wanted.items() if fnmatchcase(node, pattern)), 0)
        if isinstance(op, IfOp | func.ReturnOp):
            return 0
        return vdevice_of(op.operands[0].type).index.data

    def is_destination(self, value: SSAValue) -> bool:
        return isinstance(value.owner, bufferization.AllocTensorOp)

    def cross(self, value: SSAValue, index: int, before: Operation) -> SSAValue:
        """``value`` on vdevice ``index``; one crossing serves all later users."""
        if vdevice_of(value.type).index.data == index:
            return value
        if (value, index) not in self.crossings:
            ty = _type_on(value.type, index)
            source = value.owner
            op: Operation
            if isinstance(source, ConstantOp):
                op = ConstantOp(source.symbol.root_reference.data, ty)
            else:
                op = ToVDeviceOp(value, ty)
                op.attributes["node"] = StringAttr(f"to_vdevice {index}")
            self.block.insert_op_before(op, before)
            self.crossings[value, index] = op.results[0]
        return self.crossings[value, index]


def _retype(value: SSAValue, index: int) -> None:
    ty = _type_on(value.type, index)
    if ty != value.type:
        Rewriter.replace_value_with_new_type(value, ty)


def _type_on(ty: Attribute, index: int) -> Attribute:
    """A tensor type with its encoding on vdevice ``index``."""
    if not isinstance(ty, TensorType):
        return ty
    return TensorType(ty.element_type, ty.shape, VDeviceAttr.of(index, vdevice_of(ty).scope.data))


def _block_of(value: SSAValue) -> Block | None:
    return value.owner if isinstance(value.owner, Block) else value.owner.parent


def _node(op: Operation) -> str:
    node = op.attributes.get("node")
    return node.data if isinstance(node, StringAttr) else ""
