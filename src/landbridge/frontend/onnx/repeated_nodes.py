"""RepeatedNodes: imports a node like one before it, as the nodes of equal layers are.

What a node becomes depends on its operator, attributes, the types of its operands, and the elements of its constants
that handlers read. Nodes for which all of that is equal become the same operations on other operands: these are
recorded once and appended again. Only nodes are recorded that did nothing else to the graph.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir
from xdsl.dialects import bufferization
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from landbridge.frontend.onnx.decisions import Decisions
from landbridge.frontend.onnx.node_keys import NodeKeys, is_weight
from landbridge.frontend.onnx.values import ImportedValue, has_no_elements
from landbridge.identity_map import IdentityMap
from landbridge.ir.graph_builder import BuiltConstant, GraphBuilder
from landbridge.ir.graph_ops import CallOp, ConcatOp, ConstantOp, ViewOp
from landbridge.ir.new_operation import new_operation
from landbridge.ir.op_attributes import NODE
from landbridge.operators import Kernel
from landbridge.operators.implementations import is_built_in
from landbridge.ops.unread import is_unread
from landbridge.records import record

Array: TypeAlias = np.ndarray[Any, Any]

_APPENDED = (ConstantOp, bufferization.AllocTensorOp, CallOp, ViewOp, ConcatOp)


@record(frozen=True, eq=False)
class _Constant:
    """An array that a node put into the constant table: its own, or that of the operand ``operand`` as ``shape``.

    ``hint`` is its name there; None for the name of the operand ``named``, or of the node if that is None too.
    """

    array: Array | None
    operand: int
    shape: tuple[int, ...]
    hint: str | None
    named: int | None


@record(frozen=True, eq=False)
class _Appended:
    """An operation that a node appended. ``operands`` are positions among the values of its ``_Import``."""

    kind: type[Operation]
    operands: tuple[int, ...]
    types: tuple[Attribute, ...]
    properties: Mapping[str, Attribute]
    attributes: Mapping[str, Attribute]
    has_node_name: bool
    constant: _Constant | None


@record(frozen=True, eq=False)
class _Import:
    """What a node became. Values are those of its operands, see ``_Node.values``, then the results of ``operations``.

    ``results``: for each output an array, or the position of a value, or that of an operand that is an array, counted
    from -1 down. ``growths``: what it noted of states, as positions of values. ``spent``: the nodes that it unfolded
    into. ``functions``: the number of its PrimFuncs that no other node shares, whose names take a number each.
    """

    operations: tuple[_Appended, ...]
    results: tuple[Array | int, ...]
    growths: tuple[tuple[int, Any, int | None], ...]
    spent: int
    functions: int


@record(eq=False)
class _Node:
    """A node that is about to be imported: its ``operands``, and the ``values`` of the graph among these, each once.

    They include what an operand is a view of.
    """

    node: ir.Node
    operands: Sequence[ImportedValue | None]
    values: list[SSAValue]
    has_weights: bool


@record(eq=False)
class ImportRecording:
    """The import of ``of`` in progress. ``read``: the arrays whose elements decided something. ``is_plain``: nothing is
    known yet that prevents that it is repeated.
    """

    of: _Node
    before: tuple[Any, ...]
    last: Operation | None
    functions: int
    spent: int
    growths: int
    read: IdentityMap[Array, None] = field(default_factory=IdentityMap)
    is_plain: bool = True


class RepeatedNodes:
    """The imports of nodes of the main graph into ``g``, by all that they depend on."""

    def __init__(self, g: GraphBuilder, decisions: Decisions, attributes: dict[ir.Node, Hashable]) -> None:
        self._g, self._decisions = g, decisions
        self._keys = NodeKeys(attributes)
        self._known: dict[Hashable, _Import] = {}
        self._recording: ImportRecording | None = None
        #: How many nodes were imported like others.
        self.count = 0

    def begin(self, node: ir.Node, operands: Sequence[ImportedValue | None]) -> Sequence[ImportedValue] | None:
        """Returns the results of ``node``, appended like those of an equal one. If there is none, returns None, and the
        import of the node is recorded until ``end``.
        """
        self._recording = None
        g = self._g
        if g.lengths or g.iterations or g.is_nested or g.never_runs or len(g.dequantized):
            return None
        found = self._node(node, operands)
        if found is None:
            return None
        known = self._known.get(self._key(found))
        if known is not None:
            return self._repeat(known, found)
        before = self._state()
        g.built_constants = []
        self._recording = ImportRecording(
            found, before, g.block.last_op, g.module.prim_count - len(g.known_prims), g.budget.spent, len(g.growths)
        )
        return None

    def reads(self, kernel: Kernel | None, operands: Sequence[ImportedValue | None]) -> None:
        """Note that a handler gets ``operands``: those that it may read are part of what the import depends on."""
        recording = self._recording
        if recording is None:
            return
        if kernel is not None and not is_built_in(kernel):
            recording.is_plain = False
        is_folded = not any(isinstance(x, SSAValue) for x in operands)
        for position, x in enumerate(operands):
            if isinstance(x, np.ndarray) and (is_folded or kernel is None or not is_unread(kernel.function, position)):
                recording.read[x] = None

    def refuse(self) -> None:
        """Note that the node does more than append operations."""
        if self._recording is not None:
            self._recording.is_plain = False

    def end(self, results: Sequence[ImportedValue] | None) -> None:
        """End the recording; a node that raised has no ``results``."""
        recording, self._recording = self._recording, None
        constants, self._g.built_constants = self._g.built_constants, None
        if recording is None or results is None or not recording.is_plain or recording.before != self._state():
            return
        node = recording.of
        self._keys.note_read(
            node.node, [i for i, x in enumerate(node.operands) if isinstance(x, np.ndarray) and x in recording.read]
        )
        created = self._import(recording, constants or [], results)
        if created is not None:
            self._known[self._key(node)] = created

    def _state(self) -> tuple[Any, ...]:
        """Returns what no node may change that is repeated."""
        g, decisions = self._g, self._decisions
        return (
            *(len(table) for table in (g.guards, g.whole, g.lengths, g.dequantized, g.module.bodies, g.data.names)),
            decisions.narrowed,
            decisions.decided,
            len(decisions.inner),
            decisions.must_restart,
        )

    def _node(self, node: ir.Node, operands: Sequence[ImportedValue | None]) -> _Node | None:
        """Returns the facts of ``node``; None if it is of a kind that is not repeated."""
        if self._keys.of_attributes(node) is None:
            return None
        values: dict[SSAValue, None] = {}
        has_weights = False
        for x in operands:
            if isinstance(x, SSAValue):
                if x in self._g.whole or (has_no_elements(x) and not node.domain):
                    return None  # results without elements may follow from those of the first program
                if isinstance(x.owner, ViewOp):
                    values[x.owner.source] = None
                values[x] = None
            elif isinstance(x, np.ndarray):
                has_weights |= is_weight(x)
            elif x is not None:
                return None
        return _Node(node, operands, list(values), has_weights) if values else None

    def _key(self, node: _Node) -> Hashable:
        return self._keys.of(node.node, node.operands, self._g.growths)

    def _import(
        self, recording: ImportRecording, constants: Sequence[BuiltConstant], results: Sequence[ImportedValue]
    ) -> _Import | None:
        """Returns what the node of ``recording`` became; None if that cannot be repeated."""
        g, node = self._g, recording.of
        name = StringAttr(g.node)
        of_constants = {each.value: each for each in constants}
        positions = {value: position for position, value in enumerate(node.values)}
        appended: list[_Appended] = []
        for op in _after(recording.last, g):
            if not isinstance(op, _APPENDED) or any(value not in positions for value in op.operands):
                return None
            constant = None
            if isinstance(op, ConstantOp):
                built = of_constants.get(op.result)
                constant = None if built is None else self._constant(recording, built)
                if constant is None:
                    return None
            appended.append(
                _Appended(
                    type(op),
                    tuple(positions[value] for value in op.operands),
                    tuple(result.type for result in op.results),
                    op.properties,
                    op.attributes,
                    op.attributes.get(NODE) == name,
                    constant,
                )
            )
            for result in op.results:
                positions[result] = len(positions)
        found: list[Array | int] = []
        for x in results:
            operand = next((i for i, each in enumerate(node.operands) if each is x), None)
            if isinstance(x, SSAValue) and x in positions:
                found.append(positions[x])
            elif isinstance(x, np.ndarray) and operand is not None:
                found.append(-1 - operand)
            elif isinstance(x, np.ndarray) and not (node.has_weights and is_weight(x)):
                found.append(x)
            else:
                return None
        growths: list[tuple[int, Any, int | None]] = []
        for state, (growth, at) in list(g.growths.items())[recording.growths :]:
            if state not in positions or (at is not None and at not in positions):
                return None
            growths.append((positions[state], growth, None if at is None else positions[at]))
        return _Import(
            tuple(appended),
            tuple(found),
            tuple(growths),
            g.budget.spent - recording.spent,
            g.module.prim_count - len(g.known_prims) - recording.functions,
        )

    def _constant(self, recording: ImportRecording, built: BuiltConstant) -> _Constant | None:
        """Returns how an equal node makes the constant ``built``; None if it was made of a weight in another way, or of
        one of several that share memory.
        """
        node = recording.of
        hint: str | None = built.hint
        named = None
        if built.node == self._g.node:
            names = (None if value is None else value.name for value in node.node.inputs)
            named = next((i for i, name in enumerate(names) if name == hint), None)
            hint = None if named is not None or hint == built.node else hint
        array = built.array
        weights = {i: x for i, x in enumerate(node.operands) if isinstance(x, np.ndarray) and is_weight(x)}
        same = [i for i, x in weights.items() if array is x] or [i for i, x in weights.items() if _is_reshape(array, x)]
        if any(weights[i] is not weights[same[0]] for i in same):
            return None  # these share memory, and those of an equal node need not
        if same:
            return _Constant(None, same[0], array.shape, hint, named)
        is_of_weight = node.has_weights and is_weight(array)
        return None if is_of_weight else _Constant(array, 0, array.shape, hint, named)

    def _repeat(self, known: _Import, node: _Node) -> Sequence[ImportedValue]:
        g = self._g
        if known.spent:
            g.budget.spend(known.spent, f"{node.node.op_type} node {g.node!r}")
        name = StringAttr(g.node)
        values = list(node.values)
        for each in known.operations:
            if each.constant is not None:
                values.append(self._new_constant(each.constant, node))
                continue
            attributes = {**each.attributes, NODE: name} if each.has_node_name else each.attributes
            op = new_operation(each.kind, [values[i] for i in each.operands], each.types, each.properties, attributes)
            g.block.add_op(op)
            values.extend(op.results)
        for state, growth, at in known.growths:
            g.growths.setdefault(values[state], (growth, None if at is None else values[at]))
        g.module.prim_count += known.functions
        self.count += 1
        results: list[Any] = []
        for x in known.results:
            if isinstance(x, int):
                results.append(values[x] if x >= 0 else node.operands[-1 - x])
            else:
                results.append(x)
        return results

    def _new_constant(self, constant: _Constant, node: _Node) -> SSAValue:
        array = constant.array
        if array is None:
            operand = node.operands[constant.operand]
            assert isinstance(operand, np.ndarray)
            array = operand.reshape(constant.shape)
        hint = constant.hint
        if constant.named is not None:
            value = node.node.inputs[constant.named]
            assert value is not None
            hint = str(value.name)
        return self._g.constant(array, self._g.node if hint is None else hint)


def _after(last: Operation | None, g: GraphBuilder) -> Iterator[Operation]:
    """Yields the operations that were appended to the block of ``g`` after ``last``."""
    op = g.block.first_op if last is None else last.next_op
    while op is not None:
        yield op
        op = op.next_op


def _is_reshape(array: Array, x: Array) -> bool:
    """Returns whether ``array`` is all of ``x``, in the same memory, perhaps as another shape."""
    if array is x:
        return True
    if array.dtype != x.dtype or array.size != x.size or not (array.flags.c_contiguous and x.flags.c_contiguous):
        return False
    return bool(array.__array_interface__["data"][0] == x.__array_interface__["data"][0])
