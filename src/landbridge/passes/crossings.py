"""Crossings: which of them are views, decided from what the Targets say of their memory.

A device and a CPU that share memory exchange tensors without a copy: a tensor that one makes and the other reads is
in memory of the host, where both use it. Inputs and outputs are there too when code of both looks at them.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, TensorType, UnitAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import Rewriter

from landbridge.analysis.claims import produced
from landbridge.analysis.shared_memory import host_of, is_host, shares
from landbridge.ir.attributes import set_node_name
from landbridge.ir.graph_ops import ToVDeviceOp, viewed
from landbridge.ir.module import IRModule
from landbridge.ir.types import VDeviceAttr, vdevice_of
from landbridge.passes.registry import register_pass


@register_pass("crossings")
def crossings(module: IRModule) -> None:
    """Make a crossing a view where both sides use the same memory, and put inputs and outputs there."""
    _drop_detours(module)
    host = _host_for_both(module)
    if host is not None:
        swap_first(module, host)
        _drop_detours(module)
    for op in module.main.walk():
        if isinstance(op, ToVDeviceOp) and host_of(module, op) is not None:
            op.attributes["view"] = UnitAttr()


def _host_for_both(module: IRModule) -> int | None:
    """The CPU's vdevice that inputs and outputs should be on, as its code looks at them and the first one's too."""
    block = module.main.body.block
    returned = block.last_op.operands if block.last_op is not None else ()
    made = {found for value in returned if (found := produced(value)) is not None}
    for op in module.main.walk():
        if not isinstance(op, ToVDeviceOp):
            continue
        ends = vdevice_of(op.source.type), vdevice_of(op.result.type)
        outside = viewed(op.source) in block.args or op.result in made or produced(op.source) in made
        for mine, other in (ends, ends[::-1]):
            if outside and mine.index.data == 0 and is_host(module, other) and shares(module, mine, other):
                return other.index.data
    return None


def swap_first(module: IRModule, host: int) -> None:
    """Make vdevice ``host`` the first one, with the inputs and outputs; the one that was first takes its number."""
    vdevices = list(module.vdevices)
    vdevices[0], vdevices[host] = vdevices[host], vdevices[0]
    module.vdevices = tuple(vdevices)
    main, block = module.main, module.main.body.block
    for value in _values(main):
        number = vdevice_of(value.type).index.data
        if number in (0, host):
            Rewriter.replace_value_with_new_type(value, _on(value.type, host - number))
    for number in range(len(block.args)):
        inner = block.args[number].type
        Rewriter.replace_value_with_new_type(block.args[number], _on(inner, 0))
        argument = block.args[number]
        if block.first_op is not None and argument.first_use is not None:
            crossing = _crossing(argument, inner)
            block.insert_op_before(crossing, block.first_op)
            argument.replace_uses_with_if(crossing.result, lambda use, op=crossing: use.operation is not op)  # type: ignore[misc]
    last = block.last_op
    if isinstance(last, func.ReturnOp):
        for i, value in enumerate(last.operands):
            if vdevice_of(value.type).index.data != 0:
                crossing = _crossing(value, _on(value.type, 0))
                block.insert_op_before(crossing, last)
                last.operands[i] = crossing.result
        types = [a.type for a in block.args]
        main.properties["function_type"] = FunctionType.from_lists(types, [v.type for v in last.operands])


def _values(main: func.FuncOp) -> Iterator[SSAValue]:
    for op in main.walk():
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.args


def _on(ty: Attribute, index: int) -> Attribute:
    place = vdevice_of(ty)
    assert isinstance(ty, TensorType)  # vdevice_of has seen it
    return TensorType(ty.element_type, ty.shape, VDeviceAttr.of(index, place.scope.data, place.axis_separators))


def _crossing(value: SSAValue, ty: Attribute) -> ToVDeviceOp:
    op = ToVDeviceOp(value, ty)
    set_node_name(op, "host memory")
    return op


def nowhere(op: ToVDeviceOp) -> SSAValue | None:
    """A crossing to where its source is already gives the source."""
    return op.source if op.source.type == op.result.type else None


def there_and_back(op: ToVDeviceOp) -> SSAValue | None:
    """A crossing of a crossing from the same place gives what that one read."""
    before = op.source.owner
    return before.source if isinstance(before, ToVDeviceOp) and before.source.type == op.result.type else None


def _drop_detours(module: IRModule) -> None:
    """Read what is there already, and erase crossings that nobody reads."""
    found = [op for op in module.main.walk() if isinstance(op, ToVDeviceOp)]
    for op in found:
        known = nowhere(op) or there_and_back(op)
        if known is not None:
            op.result.replace_all_uses_with(known)
    for op in reversed(found):
        if op.result.first_use is None:
            Rewriter.erase_op(op)
