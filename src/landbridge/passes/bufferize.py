"""Bufferize: turns @main on tensors into @main on memrefs, with results written into their final destinations.

Arguments become the inputs, then the outputs, which the caller owns. Every produced value gets one destination: an
output, a part of a concatenation, the result of a branch, a loop's carried value or the row of an iteration, or memory
of its own (``memref.alloc`` at the top, which carries ``lb.vdevice``). A copy is made only where a value cannot be
produced in its destination, and is a PrimFunc of its own, so that the ledger shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.dialects import bufferization, func, memref
from xdsl.dialects.builtin import FunctionType, SymbolRefAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.rewriter import Rewriter

from landbridge.analysis.claims import Claim, Claims, parts
from landbridge.analysis.offsets import may_begin
from landbridge.analysis.placements import shared_placements
from landbridge.errors import CompileError
from landbridge.ir.allocations import buffer_alloc
from landbridge.ir.copy_prims import CopyPrims
from landbridge.ir.graph_ops import (
    CallOp,
    ConcatOp,
    ConstantOp,
    HostCallOp,
    IfOp,
    LoopOp,
    PackOp,
    ToVDeviceOp,
    UnpackOp,
    ViewOp,
    YieldOp,
    viewed,
)
from landbridge.ir.main_attributes import io_names, set_io_names
from landbridge.ir.module import IRModule
from landbridge.ir.new_operation import new_operation
from landbridge.ir.op_attributes import (
    VDEVICE,
    crossing_reason,
    node_name,
    place_on,
    set_crossing_reason,
    set_node_name,
)
from landbridge.ir.plain_attributes import ints
from landbridge.ir.segments import OPERAND_SEGMENTS, segments
from landbridge.ir.traversal import operations
from landbridge.ir.types import (
    AnyMemRef,
    AnyTensor,
    VDeviceAttr,
    buffer_type,
    dtype_of,
    element_count,
    memref_type,
    shape_of,
    vdevice_of,
)
from landbridge.passes.inplace import in_place_twin
from landbridge.passes.registry import register_pass


@register_pass("bufferize")
def bufferize(module: IRModule) -> None:
    """Give every tensor of @main a buffer and make results be written into their destinations."""
    _Bufferizer(module).run()


class _Bufferizer:
    def __init__(self, module: IRModule) -> None:
        self.module = module
        self.copies = CopyPrims(module)
        self.destinations: dict[SSAValue, SSAValue] = {}  # produced tensor -> its memref
        self.values: dict[SSAValue, SSAValue] = {}  # any tensor -> the memref to read it from
        self.constants: dict[tuple[str, Attribute], SSAValue] = {}
        self.head: list[Operation] = []
        self.body: list[Operation] = []
        self.heads: dict[Block, list[Operation]] = {}  # of loop bodies: views that belong to an iteration
        self.lowerings: dict[type[Operation], Callable[[Any], None]] = {
            CallOp: self.lower_call,
            HostCallOp: self.lower_call,
            ConstantOp: self.lower_constant,
            ViewOp: self.lower_view,
            ConcatOp: self.lower_concat,
            PackOp: self.lower_reorder,
            UnpackOp: self.lower_reorder,
            ToVDeviceOp: self.lower_crossing,
            IfOp: self.lower_if,
            LoopOp: self.lower_loop,
        }

    def run(self) -> None:
        old = self.module.main
        block = old.body.block
        inputs, outputs = io_names(old)
        returned = cast(func.ReturnOp, block.last_op).operands
        types = [buffer_type(cast(AnyTensor, v.type)) for v in (*block.args, *returned)]
        new = Block(arg_types=types)
        self.values.update(zip(block.args, new.args, strict=False))
        destinations = list(new.args[len(block.args) :])
        self.claims = Claims(self.module, block, returned, destinations)
        self.placements = shared_placements(self.module, block)
        self.lower_block(block)
        for value, destination, name in zip(returned, destinations, outputs, strict=True):
            if not self.claims.holds(value, Claim(destination, 0)):
                self.copy(self.values[value], destination, 0, value.type, f"output {name!r}")
        new.add_ops([*self.head, *self.body, func.ReturnOp.create()])
        main = func.FuncOp("main", FunctionType.from_lists(types, []), Region(new))
        main.attributes.update(old.attributes)
        set_io_names(main, inputs, outputs)
        self.module.op.body.block.insert_op_before(main, old)
        Rewriter.erase_op(old, safe_erase=False)

    def destination_of(self, value: OpResult) -> SSAValue:
        """Returns the memref that ``value`` is produced in."""
        at: SSAValue = value
        parts: list[tuple[OpResult, Claim]] = []  # a part of a part of ..., the innermost first
        while isinstance(at, OpResult) and at not in self.destinations:
            claim = self.claims.of(at)
            if claim is None:
                alloc = buffer_alloc(buffer_type(cast(AnyTensor, at.type)))
                place_on(alloc, self.placements.get(at, vdevice_of(at.type)))
                set_node_name(alloc, _node(at.owner))
                self.head.append(alloc)
                self.destinations[at] = alloc.memref
            else:
                parts.append((at, claim))
                at = claim.whole
        whole = self.destinations.get(at, at)
        for part, claim in reversed(parts):
            ty = buffer_type(cast(AnyTensor, part.type))
            whole = self.destinations[part] = self.view(whole, ty, claim.first, self.head_of(whole))
        return whole

    def head_of(self, buffer: SSAValue) -> list[Operation]:
        """Returns the leading operations that a view of ``buffer`` joins: a loop body's if an iteration owns it."""
        root = viewed(buffer)
        return self.heads.get(root.block, self.head) if isinstance(root, BlockArgument) else self.head

    def view(self, source: SSAValue, ty: AnyMemRef, first: int, ops: list[Operation]) -> SSAValue:
        if source.type == ty and first == 0:
            return source
        if isinstance(source.owner, ViewOp):  # so that the source of a view is one step away
            return self.view(source.owner.source, ty, first + source.owner.first, ops)
        op = ViewOp(source, ty, first)
        ops.append(op)
        return op.result

    # Operations -------------------------------------------------------------------------------------

    def lower_block(self, block: Block) -> None:
        for op in operations(block):
            lower = self.lowerings.get(type(op))
            if lower is not None:
                lower(op)
            elif not isinstance(op, bufferization.AllocTensorOp | YieldOp | func.ReturnOp):
                raise CompileError(f"{op.name} cannot be bufferized; legal in @main: the graph operations of lb")

    def lower_crossing(self, op: ToVDeviceOp) -> None:
        if op.view is not None:
            shared = ToVDeviceOp(self.values[op.source], buffer_type(cast(AnyTensor, op.result.type)))
            shared.attributes |= op.attributes
            place_on(shared, vdevice_of(op.result.type))
            self.body.append(shared)
            self.values[op.result] = shared.result
            return
        target = self.values[op.result] = self.destination_of(op.result)
        copied = memref.CopyOp(self.values[op.source], target)
        set_node_name(copied, _node(op))
        if why := crossing_reason(op):
            set_crossing_reason(copied, why)
        self.body.append(copied)

    def lower_call(self, op: CallOp | HostCallOp) -> None:
        inputs = [self.values[v] for v in op.inputs]
        destinations = [self.destination_of(r) for r in op.results]
        self.values.update(zip(op.results, destinations, strict=True))
        attributes = {k: v for k, v in op.attributes.items() if k != OPERAND_SEGMENTS}
        if op.results:
            attributes[VDEVICE] = vdevice_of(op.results[0].type)
        if isinstance(op, CallOp) and op in self.claims.in_place:
            attributes["callee"] = SymbolRefAttr(in_place_twin(self.module, op.callee_name))
        attributes[OPERAND_SEGMENTS] = segments(len(inputs), len(destinations))
        self.body.append(new_operation(type(op), [*inputs, *destinations], attributes=attributes))

    def lower_constant(self, op: ConstantOp) -> None:
        ty = buffer_type(cast(AnyTensor, op.result.type))
        vdevice = vdevice_of(op.result.type)
        symbol = op.symbol_name
        if (symbol, op.result.type) not in self.constants:
            loaded = ConstantOp(symbol, ty)
            place_on(loaded, vdevice)
            self.head.append(loaded)
            self.constants[symbol, op.result.type] = loaded.result
        self.values[op.result] = self.constants[symbol, op.result.type]

    def lower_view(self, op: ViewOp) -> None:
        ty, first = buffer_type(cast(AnyTensor, op.result.type)), op.first
        source = self.values[op.source]
        count, vdevice = element_count(shape_of(op.result.type)), vdevice_of(op.result.type)
        if may_begin(self.module, op.result, first) or count == 0:
            self.values[op.result] = self.view(source, ty, first, self.body)
            return
        # No kernel accepts an operand that begins there: the elements are copied to an aligned location.
        alloc = buffer_alloc(ty)
        place_on(alloc, vdevice)
        set_node_name(alloc, _node(op))
        self.head.append(alloc)
        self.values[op.result] = alloc.memref
        dtype, total = dtype_of(op.result.type), element_count(shape_of(op.source.type))
        line = self.view(source, memref_type([total], dtype, vdevice.space), 0, self.body)
        target = self.view(alloc.memref, memref_type([count], dtype, vdevice.space), 0, self.body)
        self.append_copy(self.copies.part(total, first, count, dtype, vdevice), line, target, vdevice, _node(op))

    def lower_concat(self, op: ConcatOp) -> None:
        whole = self.values[op.result] = self.destination_of(op.result)
        axis, shape = op.axis.value.data, shape_of(op.result.type)
        inner = element_count(shape[axis + 1 :])
        rows, total = element_count(shape[:axis]), shape[axis] * inner
        dtype, vdevice = dtype_of(op.result.type), vdevice_of(op.result.type)
        for part in parts(self.module, op):
            value, first = part.value, part.first
            if self.claims.holds(value, Claim(op.result, first)):
                continue
            if part.in_place:
                self.copy(self.values[value], whole, first, value.type, _node(op))
                continue
            width = shape_of(value.type)[axis] * inner
            if rows * width == 0:
                continue
            source = self.view(self.values[value], memref_type([rows, width], dtype, vdevice.space), 0, self.body)
            target = self.view(whole, memref_type([rows * total], dtype, vdevice.space), 0, self.body)
            prim = self.copies.columns(rows, width, total, first, dtype, vdevice)
            self.append_copy(prim, source, target, vdevice, _node(op))

    def lower_reorder(self, op: PackOp | UnpackOp) -> None:
        target = self.values[op.result] = self.destination_of(op.result)
        make = self.copies.pack if isinstance(op, PackOp) else self.copies.unpack
        prim = make(op.source.type, ints(op.axes), ints(op.tiles), op.result.type)
        self.append_copy(prim, self.values[op.source], target, vdevice_of(op.result.type), _node(op))

    def lower_if(self, op: IfOp) -> None:
        destinations = [self.destination_of(r) for r in op.res]
        regions = [self.lower_branch(region.block, op.res, destinations) for region in (op.then_region, op.else_region)]
        self.values.update(zip(op.res, destinations, strict=True))
        self.body.append(IfOp(self.values[op.condition], [], regions[0], regions[1], destinations))

    def lower_branch(self, old: Block, results: Sequence[SSAValue], destinations: Sequence[SSAValue]) -> Region:
        outer, self.body = self.body, []
        self.lower_block(old)
        for value, result, destination in zip(cast(YieldOp, old.last_op).values, results, destinations, strict=True):
            if not self.claims.holds(value, Claim(result, 0)):
                self.copy(self.values[value], destination, 0, value.type, "branch")
        block = Block()
        block.add_ops([*self.body, YieldOp([])])
        self.body = outer
        return Region(block)

    def lower_loop(self, op: LoopOp) -> None:
        count = len(op.carried)
        destinations = [self.destination_of(r) for r in op.res]
        for value, result, destination in zip(op.carried, op.res, destinations, strict=False):
            if not self.claims.holds(value, Claim(result, 0)):
                self.copy(self.values[value], destination, 0, value.type, _node(op))
        old = op.body.block
        block = Block(arg_types=[buffer_type(cast(AnyTensor, a.type)) for a in old.args[count:]])
        self.values.update(zip(old.args, [*destinations[:count], *block.args], strict=True))
        self.destinations.update(zip(old.args[len(old.args) - op.rows :], block.args[len(op.scanned) :], strict=True))
        outer, self.body, self.heads[block] = self.body, [], []
        self.lower_block(old)
        self.end_iteration(op, destinations)
        block.add_ops([*self.heads.pop(block), *self.body, YieldOp([])])
        self.body = outer
        counted, scanned = ([self.values[v] for v in of] for of in (op.count, op.scanned))
        none: list[SSAValue] = []
        values = (counted, none, scanned, destinations)
        self.body.append(LoopOp(op.most_trips, values, [], Region(block), ints(op.back), op.tested, _node(op)))
        self.values.update(zip(op.res, destinations, strict=True))

    def end_iteration(self, op: LoopOp, destinations: Sequence[SSAValue]) -> None:
        """Emit the copies at the end of a loop's body: rows and carried values that are not produced in their
        destinations.

        Rows are copied first, as they may read carried values that the other copies overwrite. A yielded value that is
        another carried value, or a view of one, goes through a temporary for the same reason.
        """
        block, count = op.body.block, len(op.carried)
        yielded = cast(YieldOp, block.last_op).values
        for value, row in zip(yielded[count:], block.args[len(block.args) - op.rows :], strict=True):
            if not self.claims.holds(value, Claim(row, 0)):
                self.copy(self.values[value], self.destinations[row], 0, value.type, _node(op))
        moved: list[tuple[SSAValue, SSAValue, Attribute]] = []
        for value, argument, result, to in zip(yielded[:count], block.args, op.res, destinations, strict=False):
            if value is argument or self.claims.holds(value, Claim(result, 0)):
                continue
            source = self.values[value]
            if viewed(value) in block.args[:count]:  # which another copy may overwrite first
                alloc = buffer_alloc(source.type)
                place_on(alloc, vdevice_of(value.type))
                set_node_name(alloc, _node(op))
                self.head.append(alloc)
                self.copy(source, alloc.memref, 0, value.type, _node(op))
                source = alloc.memref
            moved.append((source, to, value.type))
        for source, to, ty in moved:
            self.copy(source, to, 0, ty, _node(op))

    def copy(self, source: SSAValue, target: SSAValue, first: int, ty: Attribute, node: str) -> None:
        """Emit a copy of all elements of ``source``, of tensor type ``ty``, into ``target`` from its element ``first``
        on.
        """
        count, dtype, vdevice = element_count(shape_of(ty)), dtype_of(ty), vdevice_of(ty)
        if count == 0:
            return
        line = memref_type([count], dtype, vdevice.space)
        prim = self.copies.flat(count, dtype, vdevice)
        source, target = self.view(source, line, 0, self.body), self.view(target, line, first, self.body)
        self.append_copy(prim, source, target, vdevice, node)

    def append_copy(self, prim: str, source: SSAValue, target: SSAValue, vdevice: VDeviceAttr, node: str) -> None:
        call = CallOp(prim, [source], [target], [], node)
        place_on(call, vdevice)
        self.body.append(call)


def _node(op: Operation | Block) -> str:
    """Returns the name of the node that ``op`` comes from, or the kind of ``op`` if it has none; empty for a block."""
    if isinstance(op, Block):
        return ""
    return node_name(op) or op.name.removeprefix("lb.")
