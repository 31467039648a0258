"""Fusion's view of the graph of one block: calls, producers and consumers of results, and their updates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import TypeAlias, cast

from xdsl.dialects import bufferization, func
from xdsl.dialects.builtin import StringAttr, SymbolRefAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from landbridge.analysis.accesses import pointwise_stage
from landbridge.ir.graph_ops import CallOp, ConstantOp, ViewOp, graphs_in
from landbridge.ir.module import IRModule
from landbridge.ir.stages import Generic
from landbridge.ir.traversal import operations
from landbridge.ir.types import VDeviceAttr, element_count, shape_of, vdevice_of
from landbridge.passes.rewrites import rewrite

Key: TypeAlias = SSAValue | str

_NODE_NAME_LIMIT = 96


def inputs_of(call: CallOp) -> tuple[SSAValue, ...]:
    """Returns the inputs of a call on tensors: its operands without the destinations, of which it has one for each
    result.

    Faster than ``call.inputs``.
    """
    operands = call.operands
    return tuple(operands[: len(operands) - len(call.results)])


def value_key(value: SSAValue) -> Key:
    """Returns a key that is equal for values with the same elements: a constant is identified by its symbol."""
    if isinstance(value.owner, ConstantOp):
        return value.owner.symbol_name
    return value


def is_reshape(op: Operation) -> bool:
    """Returns whether ``op`` is a view of all elements of its source."""
    if op.name != ViewOp.name:
        return False
    assert isinstance(op, ViewOp)
    # accessors of xDSL take ten times as long as these
    return op.first == 0 and (
        element_count(shape_of(op.operands[0].type)) == element_count(shape_of(op.results[0].type))
    )


def source_of(value: SSAValue) -> SSAValue:
    """Returns the value that ``value`` is a reshape of, through any number of views."""
    while isinstance(owner := value.owner, Operation) and is_reshape(owner):
        value = owner.operands[0]
    return value


def needs_no_memory(producer: CallOp, reader: CallOp) -> bool:
    """Returns whether the result of ``producer`` need not be stored once ``reader`` computes it itself.

    A tensor with a requested scope is stored, unless the result that it is fused into has a requested scope too.
    """
    here, there = vdevice_of(producer.results[0].type), vdevice_of(reader.results[0].type)
    return here == there or here == VDeviceAttr.of(there.index.data)


def erase_dead_views(value: SSAValue) -> None:
    """Erase the reshapes of ``value`` that nothing uses."""
    for use in list(value.uses):
        op = use.operation
        if is_reshape(op):
            result = op.results[0]
            erase_dead_views(result)
            if result.first_use is None:
                Rewriter.erase_op(op)


@rewrite("fuse.view_chain", "a reshape of a reshape starts at the computed value")
def shorten_views(block: Block) -> None:
    """Let every reshape in ``block`` start at a computed value, and remove it if that has its shape."""
    for op in operations(block):
        if not isinstance(op, ViewOp) or not is_reshape(op):
            continue
        source = source_of(op.result)
        if source.type == op.result.type:
            op.result.replace_all_uses_with(source)
            Rewriter.erase_op(op)
        elif source is not op.source:
            op.operands[0] = source
    for op in reversed(operations(block)):
        if isinstance(op, ViewOp) and op.result.first_use is None:
            Rewriter.erase_op(op)


class Graph:
    """The calls of a module and the PrimFuncs that they call, by name, with the number of callers of each.

    Whoever changes calls updates it through these methods.

    Equal layers call the same PrimFuncs, and are changed in the same way. Therefore what is made of PrimFuncs with
    several callers is made once: ``known`` finds it by the names that it was made of. Such a PrimFunc, and one that
    was made of such alone, is never changed in place.
    """

    def __init__(self, module: IRModule) -> None:
        self.module = module
        self.prims = module.prims()
        self.order: dict[CallOp, int] = {}
        self._nodes: dict[CallOp, list[str]] = {}
        self._callers: Counter[str] = Counter()
        #: How many calls may run a PrimFunc at some time: its callers at first, or the fewest of what it was made of.
        self._repeats: Counter[str] = Counter()
        self._known: dict[Hashable, tuple[func.FuncOp, tuple[int, ...]]] = {}
        #: Elementwise stages of PrimFuncs that are never changed in place, by name.
        self._stages: dict[str, Generic | None] = {}
        self.blocks: list[Block] = []
        self._main = module.main
        self._collect(self._main.body.block)
        self._repeats.update(self._callers)

    def _collect(self, block: Block) -> None:
        self.blocks.append(block)
        for op in operations(block):
            if isinstance(op, CallOp):
                self.order[op] = len(self.order)
                self._callers[op.callee_name] += 1
                self._nodes[op] = [op.node.data] if op.node is not None else []
            for region in graphs_in(op):
                self._collect(region.block)

    def calls(self, block: Block) -> list[CallOp]:
        """Returns the calls of a block, in program order."""
        return [cast(CallOp, op) for op in operations(block) if op.name == CallOp.name]

    def function(self, call: CallOp) -> func.FuncOp:
        """Returns the PrimFunc of a call, which callers must not change."""
        return self.prims[call.callee_name]

    def repeats(self, calls: Sequence[CallOp]) -> int:
        """Returns how many groups of calls may run the PrimFuncs of ``calls``, which is 1 where one does."""
        return min(self._repeats[call.callee_name] for call in calls)

    def known(self, key: Hashable) -> tuple[func.FuncOp, tuple[int, ...]] | None:
        """Returns the PrimFunc that ``remember`` was given for ``key``, which has one more caller from now on, and its
        inputs; None if there is none.
        """
        found = self._known.get(key)
        if found is not None:
            function = found[0]
            name = function.sym_name.data
            if name not in self.prims:
                self._insert(function)
            self._callers[name] += 1
        return found

    def remember(self, key: Hashable, function: func.FuncOp, inputs: tuple[int, ...], repeats: int) -> None:
        """Record that ``function`` is what ``key`` makes, with the ``inputs`` that it takes; up to ``repeats`` calls
        may run it.
        """
        self._known[key] = function, inputs
        self._repeats[function.sym_name.data] = repeats

    def changed(self, call: CallOp, key: Hashable, change: Callable[[func.FuncOp], None]) -> func.FuncOp:
        """Returns the PrimFunc of ``call``, which runs it from now on, after ``change``.

        ``key`` tells apart what is done to one PrimFunc.
        """
        repeats, key = self.repeats([call]), (call.callee_name, key)
        found = self.known(key) if repeats > 1 else None
        if found is None:
            function = self.owned(call)
            change(function)
            if repeats > 1:
                self.remember(key, function, (), repeats)
            return function
        function = found[0]
        self._release(call.callee_name)
        call.callee = SymbolRefAttr(function.sym_name.data)
        return function

    def pointwise(self, call: CallOp) -> Generic | None:
        """Returns the stage of the PrimFunc of ``call`` if it is a single elementwise one, as ``pointwise_stage``."""
        name = call.callee_name
        if self._repeats[name] < 2:
            return pointwise_stage(self.prims[name])
        if name not in self._stages:
            self._stages[name] = pointwise_stage(self.prims[name])
        return self._stages[name]

    def owned(self, call: CallOp) -> func.FuncOp:
        """Returns the PrimFunc of a call, copied first if other calls run it too, or may."""
        name = call.callee_name
        function = self.prims[name]
        if self._repeats[name] > 1:
            copy = function.clone()
            self._release(name)
            self.add(copy, name)
            call.callee = SymbolRefAttr(copy.sym_name.data)
            return copy
        return function

    def add(self, function: func.FuncOp, stem: str) -> None:
        """Insert a new PrimFunc with one caller into the module, named after ``stem``."""
        stem = stem.rstrip("0123456789").rstrip("_") or "prim"
        while True:
            self.module.prim_count += 1
            name = f"{stem}_{self.module.prim_count}"
            if name not in self.prims:
                break
        function.sym_name = StringAttr(name)
        self._insert(function)
        self._callers[name] = self._repeats[name] = 1

    def _insert(self, function: func.FuncOp) -> None:
        self.module.op.body.block.insert_op_before(function, self._main)
        self.prims[function.sym_name.data] = function

    def _release(self, name: str) -> None:
        """Note that a call less runs the PrimFunc ``name``, which leaves the module when none does."""
        self._callers[name] -= 1
        if self._callers[name]:
            return
        function = self.prims.pop(name)
        if self._repeats[name] > 1:
            function.detach()  # type: ignore[no-untyped-call]  # ``known`` may return it
        else:
            Rewriter.erase_op(function)

    def forget(self, call: CallOp) -> None:
        """Erase a call whose results nothing uses, and its destinations, and keep its PrimFunc, which another call has
        taken over.
        """
        destinations = list(call.destinations)
        for result in call.res:
            erase_dead_views(result)
        Rewriter.erase_op(call)
        for value in destinations:
            if isinstance(value.owner, bufferization.AllocTensorOp) and value.first_use is None:
                Rewriter.erase_op(value.owner)
        del self.order[call], self._nodes[call]

    def remove(self, call: CallOp) -> None:
        """Erase a call without users, its destinations, and its PrimFunc when no other call runs it."""
        name = call.callee_name
        self.forget(call)
        self._release(name)

    def producer(self, value: SSAValue, block: Block) -> CallOp | None:
        """Returns the call in ``block`` with one result that ``value`` is, or is a reshape of."""
        owner = source_of(value).owner
        if isinstance(owner, CallOp) and owner.parent is block and len(owner.results) == 1:
            return owner
        return None

    def consumers(self, call: CallOp, among: Collection[CallOp]) -> list[tuple[CallOp, SSAValue]] | None:
        """Returns the calls that read the result of ``call``, each with the value it reads, which may be a reshape.

        Returns None if anything but ``among`` uses the result: another call, the function's end, a concat, another
        block. It stops at the first such use, as a value may have thousands.
        """
        found: dict[tuple[CallOp, SSAValue], None] = {}
        pending: list[SSAValue] = [call.results[0]]
        while pending:
            value = pending.pop()
            for use in value.uses:
                op = use.operation
                if op.parent is not call.parent:
                    return None
                if is_reshape(op):
                    pending.append(op.results[0])
                elif isinstance(op, CallOp) and op in among and use.index < len(inputs_of(op)):
                    found[op, value] = None
                else:
                    return None
        return list(found)

    def record(self, new: CallOp, merged: Sequence[CallOp]) -> None:
        """Record ``new``, which replaces the last of ``merged`` and does the work of all: its order and the names of
        its nodes.
        """
        nodes = list(dict.fromkeys(n for c in merged for n in self._nodes[c]))
        self.order[new] = self.order[merged[-1]]
        self._nodes[new] = nodes
        name = "+".join(nodes)
        if len(name) > _NODE_NAME_LIMIT:
            name = f"{nodes[0]}+..+{nodes[-1]}"
        if name:
            new.node = StringAttr(name)
