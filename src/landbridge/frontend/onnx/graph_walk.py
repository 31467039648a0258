"""GraphWalk imports a graph in one forward walk, in which every value is an ndarray, a value of the graph, or unknown.

Known values are evaluated at once, so that nodes which compute shapes disappear. If a node cannot be compiled, its
outputs are unknown and the walk continues, so that one error lists all problems.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Any, TypeAlias, cast

import numpy as np
import onnx_ir as ir
from xdsl.ir import SSAValue

from landbridge.errors import (
    CompileError,
    ImportModelError,
    LandbridgeError,
    NodeError,
    ShapeError,
    UndecidedSizeError,
    UnsupportedOperatorError,
)
from landbridge.frontend.onnx.attributes import attribute_values
from landbridge.frontend.onnx.condition_nodes import chooses_branches, ifs_of, is_of_carried, only_for
from landbridge.frontend.onnx.deciding import decided
from landbridge.frontend.onnx.decisions import Decisions
from landbridge.frontend.onnx.earlier_walks import EarlierWalks
from landbridge.frontend.onnx.evaluate import evaluate, foldable
from landbridge.frontend.onnx.functions import depends_on_types, function_body
from landbridge.frontend.onnx.host_nodes import host_node, read_sizes, sizes_are_datas
from landbridge.frontend.onnx.index_checks import checked_indices
from landbridge.frontend.onnx.node_body import NodeBody, body_of
from landbridge.frontend.onnx.node_names import name_of_node
from landbridge.frontend.onnx.repeated_nodes import RepeatedNodes
from landbridge.frontend.onnx.row_sequences import RowSequence, row_sequence_node
from landbridge.frontend.onnx.schema import check_schema
from landbridge.frontend.onnx.sequences import OF_SEQUENCES, TensorSequence, places, sequence_node
from landbridge.frontend.onnx.shapes import check_declared
from landbridge.frontend.onnx.size_arithmetic import (
    COMPARISONS,
    counted,
    evaluate_sizes,
    is_exact,
    supposed,
    whole_array,
)
from landbridge.frontend.onnx.small_integers import check_makes_bytes
from landbridge.frontend.onnx.values import (
    UNKNOWN,
    ImportedValue,
    Unknown,
    check_sizes_are_short,
    constant_if_empty,
    empty_tensor,
    renamed,
    shape_text,
)
from landbridge.identity_map import IdentityMap
from landbridge.ir.checkpoint import Checkpoint
from landbridge.ir.graph_builder import GraphBuilder
from landbridge.ir.graph_ops import ViewOp
from landbridge.ir.iteration_numbers import asks_of_iterations
from landbridge.ir.module import IRModule
from landbridge.ir.permissions import Permission, Permissions
from landbridge.ir.replaced_sizes import SizedOperations
from landbridge.operators import REGISTRY, Definition, Handler, HostOperator, Kernel
from landbridge.operators.implementations import is_built_in
from landbridge.ops.context import OpContext
from landbridge.ops.quantize import note_dequantized
from landbridge.ops.rule_check import check
from landbridge.records import record
from landbridge.sizes.size import Extent, dimensions_of

#: ``control_flow(walk, node, inputs) -> outputs``, for a node with subgraphs.
ControlFlow: TypeAlias = Callable[["GraphWalk", ir.Node, Sequence[Any]], Sequence[ImportedValue]]
#: Imports a model as a program, given the shapes of its inputs, their dimensions, the elements of inputs, and the names
#: of dimensions that should include 0 if possible.
ImportsBody: TypeAlias = Callable[
    [ir.Model, Mapping[str, Sequence[Any]], Mapping[str, Extent], Mapping[str, tuple[Any, ...]], Collection[str]],
    IRModule,
]


@record
class Branches:
    """What the walks of a model have found of its branches and loops.

    ``part_refused``: a branch or loop cannot be a separate program either. ``trips``: names of the dimensions that are
    trip counts of loops. ``conditions``: the values that end loops. ``is_separate``: the program of the walks is a
    separate one.
    """

    part_refused: bool = False
    trips: set[str] = field(default_factory=set)
    conditions: set[ir.Value] = field(default_factory=set)
    is_separate: bool = False


class GraphWalk:
    """Imports graphs into ``g``; nested walks share the values and problems of the enclosing walk."""

    def __init__(
        self,
        g: GraphBuilder,
        opsets: Mapping[str, int],
        control_flow: Mapping[str, ControlFlow],
        check_indices: bool = False,
        branches: Branches | None = None,
        import_body: ImportsBody | None = None,
        decisions: Decisions | None = None,
        earlier: EarlierWalks | None = None,
    ) -> None:
        self.g = g
        #: What earlier walks of the main graph have computed.
        self.earlier = earlier or EarlierWalks()
        #: What was decided of open dimensions.
        self.decisions = decisions or Decisions()
        #: Whether a node that is being imported depends on what was decided before it began: then it begins again.
        self._is_inside = self._is_nested = False
        #: What nodes of the main graph became, for equal ones; None while such may be taken back.
        self.repeated: RepeatedNodes | None = RepeatedNodes(g, self.decisions, self.earlier.attributes)
        #: Imports bodies as separate programs; None if there may be none.
        self.import_body = import_body
        self.branches = branches or Branches()
        #: Operations by the dimensions that they mention.
        self.sized = SizedOperations(g.block)
        self.values: ChainMap[ir.Value, ImportedValue] = ChainMap()
        self.problems: list[str] = []
        #: Computed values that nodes need to know, with the least and the largest legal element.
        self.needed: list[tuple[SSAValue, tuple[int, int] | None]] = []
        #: For ``If`` nodes whose condition tests whether a dimension that data decide is 0: the dimension, and the
        #: condition if it is not.
        self.counted: dict[ir.Node, tuple[str, bool]] = {}
        self.opsets, self._control_flow, self._check_indices = opsets, control_flow, check_indices

    @property
    def permissions(self) -> Permissions:
        """Returns what the walk may do, and what it has found a use for."""
        return self.g.data.permissions

    def nested(self, g: GraphBuilder, opsets: Mapping[str, int] | None = None) -> GraphWalk:
        """Returns a walk of a subgraph or function, which reads the values of this walk and adds none to them.

        It emits into ``g`` and shares the problems. ``opsets`` are those of a function; by default those of this walk.
        """
        known = self.opsets if opsets is None else opsets
        inner = GraphWalk(
            *(g, known, self._control_flow, self._check_indices, self.branches, self.import_body, self.decisions),
            earlier=self.earlier,
        )
        inner.values, inner._is_inside, inner._is_nested = self.values.new_child(), True, True
        inner.problems, inner.needed, inner.counted = self.problems, self.needed, self.counted
        inner.repeated = self.repeated
        return inner

    def checkpoint(self) -> Callable[[], None]:
        """Returns a function that takes back what was emitted and reported since."""
        reported, needed, before = len(self.problems), len(self.needed), Checkpoint(self.g)

        def restore() -> None:
            before.restore()
            del self.problems[reported:], self.needed[needed:]

        return restore

    def run_graph(self, graph: ir.Graph | ir.Function) -> list[ImportedValue]:
        """Import every node in order; returns the outputs."""
        if isinstance(graph, ir.Graph):
            for value in graph.initializers.values():
                if value.const_value is None:
                    raise ImportModelError(f"initializer {value.name!r} has no data")
                array = self.values[value] = self.earlier.initializer(value)
                check_declared(value, array, "initializer")
        for node in graph:
            self._run_node(node)
        for value in graph.outputs:
            if value not in self.values:
                raise ImportModelError(f"output {value.name!r} of graph {graph.name!r} is made by no node")
        return [self.values[value] for value in graph.outputs]

    def opset_of(self, node: ir.Node) -> int:
        """Returns the opset version of ``node``."""
        return node.version or self.opsets.get(node.domain, 1)

    def owned_outputs(self, values: Sequence[ImportedValue]) -> list[SSAValue]:
        """Returns ``values`` as values that a graph may return: each computed in this graph, in a buffer of its own.

        Inputs, constants and repeated values are copied. Raises UnsupportedOperatorError for a sequence of tensors,
        CompileError for an unknown value.
        """
        owned: list[SSAValue] = []
        taken: set[SSAValue] = set()
        for value in values:
            if isinstance(value, Unknown):
                raise CompileError("an output is unknown although nothing was reported")
            if isinstance(value, TensorSequence | RowSequence):
                raise UnsupportedOperatorError(
                    "an output is a sequence of tensors; return its elements, or their Concat"
                )
            if isinstance(value, np.ndarray):
                result = self.g.extents(value) if value.dtype == object else self.g.constant(value)
            else:
                result = value
            root = _root(result)
            if not self.g.created(root) or isinstance(value, np.ndarray) or root in taken:
                result = self.g.elementwise("copy", [result], lambda s, v: v)
                root = result
            taken.add(root)
            owned.append(result)
        return owned

    def _run_node(self, node: ir.Node) -> None:
        """Import one node and record its outputs in ``values``.

        An operator that cannot be compiled adds a line to ``problems``, and the outputs are UNKNOWN. Other errors name
        the node; those that are not Landbridge's are raised as NodeError.
        """
        name = name_of_node(node)
        subject = f"{node.op_type} node {name!r}"
        outer, self.g.node = self.g.node, name
        self.g.budget.spend(1, subject)
        try:
            results = self._with_equal_sizes(node) if self._is_inside else self._decided(node)
            check_sizes_are_short(subject, results)
        except UnsupportedOperatorError as error:
            self.problems.append(str(error))
            results = [UNKNOWN] * len(node.outputs)
        except LandbridgeError as error:
            text = str(error)
            if subject in text:
                raise
            raise type(error)(f"{subject}: {text.removeprefix(f'{name}: ')}") from error
        except Exception as error:  # an error of a handler, perhaps of a plugin, whose rules do not exclude such a node
            shapes = ", ".join(shape_text(self.values.get(v)) if v else "-" for v in node.inputs)
            raise NodeError(
                f"{subject} cannot take operands of shapes {shapes}: {type(error).__name__}: {error}"
            ) from error
        finally:
            self.g.node = outer
        for value, result in zip(node.outputs, results, strict=False):
            self.values[value] = result

    def run_instead(self, graph: ir.Graph) -> list[ImportedValue]:
        """Import every node of ``graph`` in place of the node whose branch it is; returns the outputs."""
        was, self._is_inside = self._is_inside, self._is_nested
        repeated, self.repeated = self.repeated, None
        try:
            return self.run_graph(graph)
        finally:
            self._is_inside, self.repeated = was, repeated

    def _decided(self, node: ir.Node) -> Sequence[ImportedValue]:
        """Returns the results of a node of the main graph: as those of an equal one, else ``decided``."""
        repeated = self.repeated
        if repeated is not None:
            found = repeated.begin(node, [None if v is None else self._input(v) for v in node.inputs])
            if found is not None:
                return found
        self._is_inside = True
        results: Sequence[ImportedValue] | None = None
        try:
            results = decided(self, node, self._results)
            return results
        finally:
            self._is_inside = False
            if repeated is not None:
                repeated.end(results)

    def _with_equal_sizes(self, node: ir.Node) -> Sequence[ImportedValue]:
        """Returns the results of a node of a nested graph.

        As long as the node fails because it requires that two extents are equal, their dimensions are unified and it is
        imported again. Raises UndecidedSizeError if that is not possible.
        """
        while True:
            try:
                return self._results(node)
            except UndecidedSizeError as error:
                if not self.decisions.unify(error):
                    raise

    def _input(self, value: ir.Value) -> ImportedValue:
        # ``ChainMap.get`` takes several times as long, and every node asks
        found = next((scope[value] for scope in self.values.maps if value in scope), UNKNOWN)
        is_old = self.decisions.inner or self.decisions.must_restart
        return renamed(self.g, found, self.decisions.extent) if is_old else found

    def _results(self, node: ir.Node) -> Sequence[ImportedValue]:
        opset = self.opset_of(node)
        inputs = [None if v is None else self._input(v) for v in node.inputs]
        context = self._context(node, opset, inputs)
        is_sequence = [isinstance(x, TensorSequence | RowSequence) for x in inputs]
        if not node.domain and (node.op_type in OF_SEQUENCES or any(is_sequence)):
            is_tensor = node.op_type == "Identity" and not is_sequence[0]
            if node.op_type == "SequenceMap":
                return self._without_kernel(node, context, inputs)
            if not is_tensor and node.op_type not in self._control_flow:
                return self._of_sequence(context, inputs)
        check_schema(node.domain, node.op_type, opset, self.g.node, context.attributes, inputs)
        if node.domain == "" and node.op_type in self._control_flow:
            if self.repeated is not None:
                self.repeated.refuse()
            return self._control_flow[node.op_type](self, node, inputs)
        check_makes_bytes(node, self.g.node)
        kernel = REGISTRY.find(Kernel, node.domain, node.op_type, opset)
        handler = None if kernel is None else kernel.function
        if self.repeated is not None and kernel is not None:
            self.repeated.reads(kernel, inputs)
        operands = [x for x in inputs if not isinstance(x, Unknown)]
        if handler is not None and any(isinstance(x, np.ndarray) and x.dtype == object for x in inputs):
            operator = self._on_host(node, context)
            if operator is not None and len(operands) == len(inputs):
                try:
                    return self._in_kernels(node, handler, context, inputs, opset)
                except (UnsupportedOperatorError, ShapeError, NodeError):
                    if not self.g.data.may(Permission.HOST):
                        raise
                return [constant_if_empty(self.g, x) for x in host_node(context, operator, operands)]
        return self._in_kernels(node, handler, context, inputs, opset)

    def _in_kernels(
        self, node: ir.Node, handler: Handler | None, context: OpContext, inputs: list[Any], opset: int
    ) -> Sequence[ImportedValue]:
        """Returns the results of a node: evaluated now if its inputs are known, else from its ``handler``, else from a
        definition or host operator.
        """
        known = [x for x in inputs if not isinstance(x, Unknown)]
        ranges: Mapping[SSAValue, tuple[int, int]] = {}
        if handler is not None and len(known) == len(inputs):
            checked = check(context, handler, known)
            ranges = checked.needed
            if self._check_indices:
                inputs = list(checked_indices(context, checked, known))
            empty = self.earlier.without_elements(node, opset, context.attributes, inputs, self.decisions.known)
            if empty is not None:
                return [empty_tensor(self.g, shape, dtype) for shape, dtype in empty]
        constants = [x for x in inputs if x is None or isinstance(x, np.ndarray)]
        if any(x is not None and x.dtype == object for x in constants):
            if len(constants) == len(inputs) and not node.domain:
                given = [a for a in constants if a is not None]
                try:
                    evaluated = self._sizes(node, context, constants)
                except UndecidedSizeError:
                    if not self._may_count(node, given) and not self._may_differ(node):
                        raise
                    evaluated = None  # a kernel compares them
                if evaluated is not None:
                    data = self.g.data
                    data.supposed |= supposed(node.op_type, context.attributes, given, evaluated, data.names)
                    return [evaluated]
        elif node.op_type == "Identity" and not node.domain and isinstance(inputs[0], np.ndarray):
            return [inputs[0]]  # not a copy, so that layers which share weights pack them once
        elif handler is not None and inputs and len(constants) == len(inputs) and foldable(node):
            folded = self._folded(node, context, handler, constants)
            operator = _host_operator(node, context) if folded is None else None
            if operator is not None and not operator.in_order:
                with suppress(NodeError):  # the handler reports what is wrong with the node
                    return host_node(context, operator, constants)
            if folded is not None:
                if node.op_type == "DequantizeLinear" and not context.attribute("block_size", 0):
                    x, scale, zero = [*constants, None][:3]
                    assert x is not None and scale is not None
                    note_dequantized(self.g, folded[0], x, scale, zero, context.attribute("axis", 1))
                return folded
        if node.op_type == "Cast" and context.attributes["to"] == "int64" and isinstance(inputs[0], SSAValue):
            values = self.g.whole.get(inputs[0])
            if values is not None and is_exact(values, context.dtype(inputs[0])):
                return [values]
        if handler is None:
            return self._without_kernel(node, context, inputs)
        if len(known) < len(inputs):
            return [UNKNOWN] * len(node.outputs)
        result = self._handled(node, handler, context, inputs, ranges)
        results = [result] if isinstance(result, np.ndarray | SSAValue) else list(result)
        if not node.domain and isinstance(results[0], SSAValue):
            self._note_whole(node, context, inputs, results[0])
        return [constant_if_empty(self.g, x) for x in results]

    def _folded(
        self, node: ir.Node, c: OpContext, handler: Handler, operands: Sequence[np.ndarray[Any, Any] | None]
    ) -> list[np.ndarray[Any, Any]] | None:
        """Returns ``evaluate``; a node of the main graph is evaluated once in all walks."""
        found = None if self._is_nested else self.earlier.constants(node, operands)
        if found is None:
            found = evaluate(c, handler, operands)
            if found is not None and not self._is_nested:
                self.earlier.keep(node, operands, found)
        return found

    def _sizes(self, node: ir.Node, c: OpContext, operands: Sequence[Any]) -> np.ndarray[Any, Any] | None:
        """Returns the result of a node on extents, an array of integers and Sizes.

        Returns None if the result differs between iterations of a loop, or if the node's handler has to compute it.
        """
        try:
            return evaluate_sizes(node.op_type, c.attributes, operands)
        except UndecidedSizeError as error:
            if asks_of_iterations(error):
                return None
            raise

    def _note_whole(self, node: ir.Node, c: OpContext, inputs: Sequence[Any], result: SSAValue) -> None:
        """Record in ``g.whole`` the extents that ``result`` holds as another dtype, such as float32.

        That is so if the node computes it from such values, and if the dtype holds these integers exactly. A later Cast
        to int64 gives the extents back.
        """
        if not any(x in self.g.whole for x in inputs if isinstance(x, SSAValue)):
            return
        given = [None if x is None else whole_array(c, x) for x in inputs]
        if any(array is None for array in given):
            return
        try:
            found = self._sizes(node, c, given)
        except UndecidedSizeError:  # a kernel compares them
            return
        if found is not None and found.dtype == object and is_exact(found, c.dtype(result)):
            self.g.whole[result] = found

    def _may_count(self, node: ir.Node, operands: Sequence[np.ndarray[Any, Any]]) -> bool:
        """Returns whether ``node`` may compare a size that data decide because its result only chooses a branch of
        ``If``.

        Records the conditions that test whether that size is 0 in ``counted``.
        """
        of_data = not self.g.data.names.isdisjoint(dimensions_of(e for a in operands for e in a.flat))
        found = of_data and not self.g.is_nested and node.op_type in COMPARISONS and chooses_branches(node)
        if not found or self.permissions.may(Permission.NOT_EMPTY):
            return False
        counts = counted(node.op_type, operands)
        if counts is not None:
            self.counted |= {each: (counts[0], counts[1] != negated) for each, negated in ifs_of(node)}
        return True

    def _may_differ(self, node: ir.Node) -> bool:
        """Returns whether a kernel may compare sizes that differ between iterations of a loop, which ``node`` does.

        It may in a separate program, and if the result only ends a loop, or only chooses a branch and depends on the
        loop's carried values.
        """
        if not self.g.data.are_legal or node.op_type not in COMPARISONS:
            return False
        conditions = self.branches.conditions
        found = self.branches.is_separate or only_for(node, conditions)
        found = found or (chooses_branches(node) and is_of_carried(node, conditions))
        return found and not self.permissions.may(Permission.DECIDE)

    def _of_sequence(self, c: OpContext, inputs: Sequence[Any]) -> Sequence[ImportedValue]:
        if any(isinstance(x, Unknown) for x in inputs):
            return [UNKNOWN]
        if any(isinstance(x, RowSequence) for x in inputs):
            return cast(Sequence[ImportedValue], [row_sequence_node(c, inputs)])
        try:
            result: Any = sequence_node(c, inputs)
        except UnsupportedOperatorError as error:
            needed = error.needed
            if not isinstance(needed, SSAValue):
                raise
            read = read_sizes(c, needed) if c.op_type == "SplitToSequence" else None
            if read is None:
                self.needed.append((needed, places(inputs).get(needed)))
                raise
            return self._of_sequence(c, [read if x is needed else x for x in inputs])
        return [result]

    def _handled(
        self,
        node: ir.Node,
        handler: Handler,
        c: OpContext,
        inputs: Sequence[Any],
        ranges: Mapping[SSAValue, tuple[int, int]],
    ) -> Any:
        """Returns the result of ``handler``.

        If it needs the elements of a computed integer tensor, a run reads these and they become dimensions, with
        ``ranges`` as their legal elements. If it needs anything else, or if nodes may run on the host, its host
        operator computes the result. Raises UnsupportedOperatorError otherwise.
        """
        try:
            return handler(c, *inputs)
        except UnsupportedOperatorError as error:
            needed = error.needed
            operator = self._on_host(node, c)
            is_read = isinstance(needed, SSAValue) and not c.dtype(needed).startswith("float")
            if operator is not None and (c.g.data.may(Permission.HOST) or not is_read):
                return host_node(c, operator, inputs)
            if not isinstance(needed, SSAValue):
                raise
            read = read_sizes(c, needed, ranges.get(needed)) if any(x is needed for x in inputs) else None
            if read is None:
                also = [x for x in inputs if isinstance(x, SSAValue) and x in ranges]
                self.needed += [(x, ranges.get(x)) for x in dict.fromkeys((needed, *also))]
                raise
        return self._handled(node, handler, c, [read if x is needed else x for x in inputs], ranges)

    def _on_host(self, node: ir.Node, c: OpContext) -> HostOperator | None:
        """Returns the node's host operator; None if it has none, in a nested graph, or if no size may be open."""
        return _host_operator(node, c) if c.g.data.are_legal and not c.g.is_nested else None

    def _is_cut(self, c: OpContext, operator: HostOperator, inputs: Sequence[ImportedValue | None]) -> bool:
        """Returns whether ``operator`` computes the node as a whole, although ONNX defines it by other operators.

        It does if data decide an extent of a result. False in a nested graph, and if an input is unknown.
        """
        operands = [x for x in inputs if not isinstance(x, Unknown)]
        is_legal = c.g.data.are_legal and not c.g.is_nested and len(operands) == len(inputs)
        return is_legal and sizes_are_datas(c, operator, operands)

    def _context(self, node: ir.Node, opset: int, inputs: Sequence[ImportedValue | None]) -> OpContext:
        used = max((i + 1 for i, v in enumerate(node.outputs) if v.name), default=0)
        arrays = [(v, x) for v, x in zip(node.inputs, inputs, strict=True) if v and isinstance(x, np.ndarray)]
        names = IdentityMap((x, str(v.name)) for v, x in arrays)
        return OpContext(self.g, node.op_type, opset, attribute_values(node), used, names)

    def _defined(
        self, node: ir.Node, c: OpContext, inputs: Sequence[ImportedValue | None], operator: HostOperator | None
    ) -> NodeBody | None:
        """Returns the body that a definition gives the node.

        Returns None if there is no definition. If the definition does not support this form of the node, returns None
        if ``operator`` can take it, else raises UnsupportedOperatorError.
        """
        definition = REGISTRY.find(Definition, node.domain, node.op_type, c.opset)
        if definition is None:
            return None
        if self.repeated is not None and not is_built_in(definition):
            self.repeated.refuse()
        try:
            return body_of(definition, node, inputs)
        except UnsupportedOperatorError:
            if operator is None:
                raise
            return None

    def _without_kernel(
        self, node: ir.Node, c: OpContext, inputs: Sequence[ImportedValue | None]
    ) -> Sequence[ImportedValue]:
        """Returns the results of a node that has no kernel: from its definition, from ONNX's function body of it, or
        from a host operator.

        Raises UnsupportedOperatorError if there is none of them.
        """
        operator = _host_operator(node, c)
        owned = self._defined(node, c, inputs, operator)
        body: ir.Function | None
        if owned is not None:
            if self.repeated is not None and owned.reads:
                self.repeated.reads(None, owned.reads)
            body, inputs = owned.function, owned.inputs
        elif any(isinstance(x, Unknown) for x in inputs) and depends_on_types(node.domain, node.op_type, c.opset):
            return [UNKNOWN] * len(node.outputs)
        else:
            if self.repeated is not None:
                self.repeated.reads(None, inputs)
            body = function_body(node, c.opset, inputs)
            if body is not None and operator is not None and self._is_cut(c, operator, inputs):
                body = None
        if body is None:
            if operator is None:
                raise REGISTRY.nothing_implements(node.domain, node.op_type, c.opset, self.g.node)
            operands = [x for x in inputs if not isinstance(x, Unknown)]
            if len(operands) < len(inputs):
                return [UNKNOWN] * len(node.outputs)
            return [constant_if_empty(self.g, x) for x in host_node(c, operator, operands)]
        inner = self.nested(self.g, {**self.opsets, **body.opset_imports})  # a body may omit opsets that it uses
        for formal, value in zip(body.inputs, inputs, strict=False):
            if value is not None:
                inner.values[formal] = value
        return inner.run_graph(body)


def _host_operator(node: ir.Node, c: OpContext) -> HostOperator | None:
    """Returns the numpy function that the registry has for the node's operator, else None."""
    return REGISTRY.find(HostOperator, node.domain, node.op_type, c.opset)


def _root(value: SSAValue) -> Any:
    """Returns the value at the end of a chain of views."""
    while isinstance(value.owner, ViewOp):
        value = value.owner.source
    return value
