"""Separate programs for bodies of loops and branches, which the enclosing program calls between its segments.

Such a body has no more constraints than a model: its tensors may have other shapes in each iteration, as those that
grow have, and its result may have another shape than that of the other branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import onnx_ir as ir
from xdsl.dialects import func
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, BlockArgument, SSAValue

from landbridge.dtypes import numpy_dtype
from landbridge.errors import CompileError, UnsupportedOperatorError
from landbridge.executable.segments import BRANCH
from landbridge.frontend.onnx.graph_walk import GraphWalk
from landbridge.frontend.onnx.values import ImportedValue, is_known
from landbridge.ir.graph_ops import BODIES, DEFINES
from landbridge.ir.module import IRModule
from landbridge.ir.permissions import Permission
from landbridge.ir.plain_attributes import int_array, plain_attribute, string_array
from landbridge.ir.types import dtype_of, shape_of
from landbridge.ops.context import OpContext, Operand
from landbridge.records import record
from landbridge.sizes.size import Extent, dimensions_of, of_symbol

Shape: TypeAlias = tuple[Extent, ...]


@record(frozen=True)
class Formal:
    """An input of a body: its dtype, and its shape, in which text is a dimension without a range."""

    shape: tuple[Extent | str, ...]
    dtype: str


@record(frozen=True, eq=False)
class Captured:
    """The values of the enclosing graph that a graph reads: ``inputs``, which a run computes, and ``known``, constant
    arrays.

    ``elements`` has the elements of those ``inputs`` that are sizes: the body knows them as dimensions.
    """

    inputs: dict[ir.Value, SSAValue]
    known: dict[ir.Value, np.ndarray[Any, Any]]
    elements: dict[ir.Value, tuple[Extent, ...]]


def is_legal(walk: GraphWalk) -> bool:
    """Returns whether separate programs may be used here; if they are not allowed yet, records that they might help."""
    legal = walk.g.data.are_legal and not walk.g.is_nested and walk.import_body is not None
    return legal and walk.permissions.may(Permission.SEPARATE)


def else_separate(
    walk: GraphWalk, whole: Callable[[], Sequence[ImportedValue]], separate: Callable[[], list[ImportedValue]]
) -> list[ImportedValue]:
    """Returns the results of ``whole``, which emits code of this program; if that fails, those of ``separate``.

    What the failed attempt reported, tested and spent is taken back first.
    """
    reported, restore, useful = len(walk.problems), walk.checkpoint(), set(walk.permissions.useful)
    try:
        found = list(whole())
        if len(walk.problems) == reported:
            return found
    except CompileError:
        pass
    restore()
    walk.permissions.useful -= {Permission.READ, Permission.HOST} - useful
    return separate()


def captured(walk: GraphWalk, *graphs: ir.Graph) -> Captured:
    """Returns the values of ``walk`` that ``graphs`` and their nested graphs read.

    Raises UnsupportedOperatorError for a value that is unknown or not a tensor, and for a replaceable weight.
    """
    read = dict.fromkeys(v for graph in graphs for v in _read(graph) if v in walk.values)
    found = Captured({}, {}, {})
    c = OpContext(walk.g, "Identity", 1, {})
    for value in read:
        x = walk.values[value]
        if not is_known(x):
            raise UnsupportedOperatorError(f"{walk.g.node}: it reads {value.name!r}, which is not a known tensor")
        if isinstance(x, np.ndarray) and x.dtype != object:
            found.known[value] = x
            continue
        found.inputs[value] = c.value(cast(Operand, x))
        if isinstance(x, np.ndarray):
            found.elements[value] = tuple(x.reshape(-1).tolist())
        if _is_parameter(walk, found.inputs[value]):
            raise UnsupportedOperatorError(
                f"{walk.g.node}: it reads the replaceable weight {value.name!r}; leave it out of mutable="
            )
    return found


def _is_parameter(walk: GraphWalk, value: SSAValue) -> bool:
    """Returns whether ``value`` is a replaceable weight; these are the last arguments of the program."""
    if not isinstance(value, BlockArgument):
        return False
    return value.index >= len(value.block.args) - len(walk.g.module.parameters)


def _read(graph: ir.Graph) -> Iterator[ir.Value]:
    yield from graph.outputs
    for node in ir.traversal.RecursiveGraphIterator(graph):
        yield from (v for v in node.inputs if v is not None)
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                yield from attribute.as_graph().outputs


def body_program(walk: GraphWalk, graph: ir.Graph, formals: Sequence[Formal], around: Captured) -> IRModule:
    """Returns the program of ``graph``, the body of a loop or a branch, as a separate IRModule.

    Its inputs are ``formals``, followed by ``around.inputs``; the arrays in ``around.known`` become its constants. Text
    extents of ``formals`` are open dimensions without a range. ``module.around`` names the dimensions that the
    enclosing program knows.
    """
    body = graph.clone(allow_outer_scope_values=True)
    outer = [*around.inputs, *around.known]
    inner = {value: ir.Value(name=f"{value.name}@around") for value in outer}
    _exchange(body, inner)
    shapes: dict[str, tuple[Any, ...]] = {}
    lengths = {e for formal in formals for e in formal.shape if isinstance(e, str)}
    declared: list[Extent] = []
    chosen: dict[str, tuple[Any, ...]] = {}
    for number, (value, formal) in enumerate(zip(body.inputs, formals, strict=True)):
        value.name = value.name or f"input_{number}"
        _declare(value, formal.dtype)
        shapes[value.name] = formal.shape
    for value, x in around.inputs.items():
        body.inputs.append(_declare(inner[value], dtype_of(x.type)))
        name = str(inner[value].name)
        shapes[name] = shape_of(x.type)
        if value in around.elements:
            chosen[name] = around.elements[value]
            declared += around.elements[value]
    for value, array in around.known.items():
        inner[value].const_value = ir.tensor(array, name=inner[value].name)
        body.initializers.add(inner[value])
    for number, value in enumerate(body.outputs):
        value.name = value.name or f"output_{number}"
        value.shape = None
    declared += [e for shape in shapes.values() for e in shape if not isinstance(e, str)]
    dimensions: dict[str, Extent] = {n: of_symbol(s) for n, s in dimensions_of(declared).items()}
    model = ir.Model(body, ir_version=10)
    body.opset_imports.update(walk.opsets)
    assert walk.import_body is not None
    module = walk.import_body(model, shapes, dimensions, chosen, lengths)
    module.around = tuple(dimensions)
    return module


def _declare(value: ir.Value, dtype: str) -> ir.Value:
    """Set the dtype of ``value`` and remove its shape, because shapes declared in bodies are often wrong."""
    value.shape = None
    value.type = ir.TensorType(ir.DataType.from_numpy(numpy_dtype(dtype)))
    return value


def _exchange(graph: ir.Graph, new: Mapping[ir.Value, ir.Value]) -> None:
    """Make ``graph`` and its nested graphs read ``new[value]`` instead of each ``value`` of the enclosing graph."""
    for node in ir.traversal.RecursiveGraphIterator(graph):
        for at, value in enumerate(node.inputs):
            if value is not None and value in new:
                node.replace_input_with(at, new[value])
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                _exchange_outputs(attribute.as_graph(), new)
    _exchange_outputs(graph, new)


def _exchange_outputs(graph: ir.Graph, new: Mapping[ir.Value, ir.Value]) -> None:
    for at, value in enumerate(graph.outputs):
        if value in new:
            graph.outputs[at] = new[value]


def results_of(module: IRModule) -> list[tuple[Shape, str]]:
    """Returns the shape and dtype of each output of ``module``."""
    returned = module.main.body.block.last_op
    assert isinstance(returned, func.ReturnOp)
    return [(shape_of(v.type), dtype_of(v.type)) for v in returned.operands]


def known_around(module: IRModule, extent: Extent) -> bool:
    """Returns whether the program around ``module`` knows ``extent``, an extent of a result."""
    return dimensions_of([extent]).keys() <= set(module.around)


class Joined:
    """Creates the dimensions of results that one of several bodies computes; ``new`` lists them in the order of
    creation.
    """

    def __init__(self, walk: GraphWalk) -> None:
        self._walk = walk
        self._known: dict[tuple[Any, ...], Extent] = {}
        self.new: list[Extent] = []

    def extent(self, name: str, key: tuple[Any, ...]) -> Extent:
        """Returns a dimension that only a run knows, named after ``name``; calls with equal ``key`` return the same
        one.
        """
        if key not in self._known:
            self._known[key] = self._walk.g.data.new(name)
            self.new.append(self._known[key])
        return self._known[key]


def call(
    walk: GraphWalk,
    operator: str,
    inputs: Sequence[SSAValue | None],
    outputs: Sequence[tuple[Shape, str]],
    bodies: Sequence[IRModule],
    new: Sequence[Extent],
    attributes: Mapping[str, Any],
) -> list[ImportedValue]:
    """Emit a call of ``operator`` that runs ``bodies``; returns its results, with shapes ``outputs`` that contain the
    ``new`` dimensions.
    """
    names = [f"{walk.g.node}@{len(walk.g.module.bodies) + number}" for number in range(len(bodies))]
    walk.g.module.bodies.update(zip(names, bodies, strict=True))
    parameters: dict[str, Attribute] = {
        "attributes": plain_attribute(dict(attributes)),
        "absent": int_array([i for i, x in enumerate(inputs) if x is None]),
        "node": StringAttr(walk.g.node),
        BODIES: string_array(names),
    }
    if new:
        parameters[DEFINES] = int_array(new)
    given = [x for x in inputs if x is not None]
    return list(walk.g.host_call(operator, given, outputs, parameters))


def separate_branch(walk: GraphWalk, condition: SSAValue, then: ir.Graph, orelse: ir.Graph) -> list[ImportedValue]:
    """Returns the results of an ``If`` whose branches are separate programs, which may return different extents."""
    around = captured(walk, then, orelse)
    bodies = [body_program(walk, graph, [], around) for graph in (then, orelse)]
    joined, outputs = Joined(walk), []
    for number, ((shape, dtype), (other, other_dtype)) in enumerate(zip(*map(results_of, bodies), strict=True)):
        longer = max(shape, other, key=len)
        is_one = all(e == 1 for e in (*shape, *other))
        if dtype != other_dtype or (len(shape) != len(other) and not is_one):
            walk.branches.part_refused = True
            raise UnsupportedOperatorError(
                f"If node {walk.g.node!r}: as output {number} one branch gives {dtype} of {len(shape)} axes, the other "
                f"{other_dtype} of {len(other)}; have both give the same dtype and as many axes"
            )
        if is_one:
            outputs.append((longer, dtype))
            continue
        pairs = enumerate(zip(shape, other, strict=True))
        extents = [
            one
            if one == two and all(known_around(body, one) for body in bodies)
            else joined.extent(f"{walk.g.node}_{number}_{axis}", (number, axis))
            for axis, (one, two) in pairs
        ]
        outputs.append((tuple(extents), dtype))
    given = [condition, *around.inputs.values()]
    return call(walk, BRANCH, given, outputs, bodies, joined.new, {"captured": len(around.inputs)})
