"""import_onnx: one forward walk in which every value is an ndarray, a value of the graph, or unknown.

What is known while the walk goes on is evaluated at once, so shapes computed by the model disappear. A node that cannot
be compiled makes its outputs unknown and the walk goes on, so one error lists everything there is to do.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import onnx_ir as ir
from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.ir import Block, Region, SSAValue

from landbridge.dtypes import numpy_dtype
from landbridge.errors import (
    CompileError,
    ImportModelError,
    InputError,
    LandbridgeError,
    NodeError,
    UnsupportedOperatorError,
)
from landbridge.executable.parts import VDevice
from landbridge.frontend.onnx.attributes import attribute_values, dtype_of_onnx, tensor_array
from landbridge.frontend.onnx.branches import import_if
from landbridge.frontend.onnx.evaluate import evaluate, foldable
from landbridge.frontend.onnx.frames import Frame, frame_of, read_frame
from landbridge.frontend.onnx.functions import function_body
from landbridge.frontend.onnx.index_checks import checked_indices
from landbridge.frontend.onnx.load import load_model
from landbridge.frontend.onnx.loops import import_loop, import_scan
from landbridge.frontend.onnx.parameters import promote_parameters
from landbridge.frontend.onnx.schema import check_schema
from landbridge.frontend.onnx.shapes import check_declared, input_shapes
from landbridge.input_spec import InputSpec
from landbridge.ir.attributes import set_frame_layouts, set_io_names, set_parameter_names
from landbridge.ir.budget import MAX_NODES, Budget
from landbridge.ir.graph_builder import GraphBuilder
from landbridge.ir.graph_ops import ViewOp
from landbridge.ir.module import IRModule
from landbridge.ir.types import shape_of, tensor_type
from landbridge.ops.context import Array, OpContext, Operand
from landbridge.ops.registry import handler_for
from landbridge.ops.rules import check
from landbridge.target import Target

if TYPE_CHECKING:
    from onnx import ModelProto


class Unknown:
    """The value of a node that could not be imported."""


UNKNOWN: Final = Unknown()
Known = Operand | Unknown


def import_onnx(
    model: str | Path | bytes | ModelProto,
    shapes: Mapping[str, Sequence[int]] | None,
    targets: tuple[Target, ...],
    vdevices: tuple[VDevice, ...] = (VDevice("cpu", 0),),
    extra_outputs: Sequence[str] = (),
    constants: Mapping[str, Any] | None = None,
    mutable: Sequence[str] = (),
    frames: Mapping[str, InputSpec] | None = None,
    max_nodes: int = MAX_NODES,
    check_indices: bool = False,
) -> IRModule:
    """The IRModule of an ONNX model, with ``func.func @main(inputs) -> outputs`` and their names as attributes.

    ``shapes``: static shapes of inputs by name, needed where the file leaves dimensions open. ``extra_outputs``:
    names of inner values to return after the model's outputs. ``constants``: values of inputs that are fixed now,
    arrays or numbers by name; such an input is no argument of ``@main`` and what depends on it alone is folded.
    ``mutable``: names of weights that stay replaceable: the last arguments of ``@main``, ``parameters`` of the module.
    ``frames``: what the application has for inputs, by name, where that is not what the model takes. ``max_nodes``:
    what functions, loops and recurrent layers may unfold into, with all other nodes. ``check_indices``: indices that
    are out of range end a run with IndexRangeError.

    Raises ImportModelError (no valid model), InputError (unknown names), ShapeError (shapes that contradict each
    other), BudgetError (more than ``max_nodes``) and UnsupportedOperatorError, which lists every operator and dimension
    that cannot be compiled.
    """
    loaded, sources, files = load_model(model, max_nodes)
    graph = loaded.graph
    parameters = promote_parameters(graph, mutable)
    inputs = [v for v in graph.inputs if v.name not in graph.initializers]
    fixed = _fixed_inputs(inputs, constants or {})
    shapes = {**_shapes_left_open(inputs, frames or {}), **(shapes or {})}
    shapes |= {str(v.name): array.shape for v, array in fixed.items()}
    known, advice = input_shapes(inputs, shapes)
    inputs = [v for v in inputs if v not in fixed]
    framed = _frames(inputs, frames or {}, known)
    plain = {str(v.name): tensor_type(known.get(str(v.name), ()), _input_dtype(v)) for v in inputs}
    block = Block(arg_types=list((plain | {name: frame.type for name, frame in framed.items()}).values()))
    module = IRModule(ModuleOp([]), targets, vdevices, parameters=parameters, sources=sources, files=files)
    importer = Importer(GraphBuilder(module, block, budget=Budget(max_nodes)), loaded.opset_imports, check_indices)
    for value, argument in zip(inputs, block.args, strict=True):
        argument.name_hint = None
        name = str(value.name)
        importer.values[value] = argument if name in known else UNKNOWN
        if name in framed:
            importer.values[value] = read_frame(importer.g, argument, framed[name])
    importer.values.update(fixed)
    importer.run_graph(graph)
    wanted = [*graph.outputs, *_find(importer, graph, extra_outputs)]
    problems = [*advice, *importer.problems]
    if problems:
        listed = "\n".join(f"  - {p}" for p in problems)
        raise UnsupportedOperatorError(f"the model cannot be compiled as it is; {len(problems)} to settle:\n{listed}")
    for value in graph.outputs:
        check_declared(value, importer.values[value], "output", strict=False)
    returned = importer.own_outputs([importer.values[v] for v in wanted])
    block.add_op(func.ReturnOp(*returned))
    types = FunctionType.from_lists([a.type for a in block.args], [v.type for v in returned])
    main = func.FuncOp("main", types, Region(block))
    set_io_names(main, [str(v.name) for v in inputs], [str(v.name) for v in wanted])
    if framed:
        set_frame_layouts(main, {name: frame.layout for name, frame in framed.items()})
    if parameters:
        set_parameter_names(main, list(parameters))
    first = module.op.body.block.first_op
    if first is None:
        module.op.body.block.add_op(main)
    else:
        module.op.body.block.insert_op_before(main, first)
    return module


def _shapes_left_open(inputs: Sequence[ir.Value], frames: Mapping[str, InputSpec]) -> dict[str, tuple[int, ...]]:
    """The shapes of inputs that follow from those of their frames, where the file does not fix them."""
    fixed = {str(v.name) for v in inputs if v.shape is not None and all(isinstance(e, int) for e in v.shape)}
    shapes = {name: spec.model_shape() for name, spec in frames.items() if name not in fixed}
    return {name: shape for name, shape in shapes.items() if shape is not None}


def _frames(
    inputs: Sequence[ir.Value], frames: Mapping[str, InputSpec], known: Mapping[str, tuple[int, ...]]
) -> dict[str, Frame]:
    """The frames of inputs whose shape is known, by name."""
    dtypes = {str(v.name): _input_dtype(v) for v in inputs}
    for name in frames:
        if name not in dtypes:
            raise InputError(f"inputs: no input {name!r} is left to state; they are: {', '.join(dtypes) or 'none'}")
    return {name: frame_of(name, spec, known[name], dtypes[name]) for name, spec in frames.items() if name in known}


def _fixed_inputs(inputs: Sequence[ir.Value], constants: Mapping[str, Any]) -> dict[ir.Value, Array]:
    """The inputs that ``constants`` fixes, in the dtype of the file."""
    by_name = {str(v.name): v for v in inputs}
    fixed = {}
    for name, given in constants.items():
        if name not in by_name:
            raise InputError(f"constants: the model has no input {name!r}; its inputs: {', '.join(by_name) or 'none'}")
        wanted = numpy_dtype(_input_dtype(by_name[name]))
        array = np.asarray(given)
        if isinstance(given, np.ndarray | np.generic) and array.dtype != wanted:
            raise InputError(f"constants: {name!r} is {array.dtype}, the model takes {wanted}; convert it")
        fixed[by_name[name]] = array.astype(wanted)
    return fixed


def _input_dtype(value: ir.Value) -> str:
    if not isinstance(value.type, ir.TensorType):
        raise UnsupportedOperatorError(
            f"input {value.name!r} is no tensor ({value.type}); sequences, optionals and maps cannot be compiled"
        )
    return dtype_of_onnx(value.type.dtype)


def _find(importer: Importer, graph: ir.Graph, names: Sequence[str]) -> list[ir.Value]:
    """Values of the main graph by name."""
    by_name = {v.name: v for v in importer.values if v.graph is graph or v.is_initializer()}
    by_name.update((v.name, v) for node in graph for v in node.outputs)
    missing = [n for n in names if by_name.get(n) not in importer.values]
    if missing:
        raise InputError(
            f"extra_outputs: no value {', '.join(map(repr, missing))} in the main graph; values inside a branch "
            "cannot be returned"
        )
    return [by_name[n] for n in names]


class Importer:
    """Walks graphs into ``g``; nested importers share values and problems with the one around them."""

    def __init__(self, g: GraphBuilder, opsets: Mapping[str, int], check_indices: bool = False) -> None:
        self.g = g
        self.check_indices = check_indices
        self.opsets = opsets
        self.values: ChainMap[ir.Value, Known] = ChainMap()
        self.problems: list[str] = []

    def nested(self, g: GraphBuilder) -> Importer:
        """An importer into a block inside this one's; it sees these values and adds none to them."""
        inner = Importer(g, self.opsets, self.check_indices)
        inner.values = self.values.new_child()
        inner.problems = self.problems
        return inner

    def run_graph(self, graph: ir.Graph | ir.Function) -> None:
        """Import every node in order."""
        if isinstance(graph, ir.Graph):
            for value in graph.initializers.values():
                if value.const_value is None:
                    raise ImportModelError(f"initializer {value.name!r} has no data")
                array = self.values[value] = tensor_array(value.const_value)
                check_declared(value, array, "initializer")
        for node in graph:
            self.run_node(node)
        for value in graph.outputs:
            if value not in self.values:
                raise ImportModelError(f"output {value.name!r} of graph {graph.name!r} is made by no node")

    def run_node(self, node: ir.Node) -> None:
        """Import one node; what it cannot do becomes a problem and unknown outputs."""
        name = node.name or next((str(v.name) for v in node.outputs if v.name), node.op_type)
        outer, self.g.node = self.g.node, name
        self.g.budget.spend(1, f"{node.op_type} node {name!r}")
        try:
            results = self._results(node)
        except UnsupportedOperatorError as error:
            self.problems.append(str(error))
            results = [UNKNOWN] * len(node.outputs)
        except LandbridgeError as error:
            what, text = f"{node.op_type} node {name!r}", str(error)
            if what in text:
                raise
            raise type(error)(f"{what}: {text.removeprefix(f'{name}: ')}") from error
        except Exception as error:  # a handler, of a plugin perhaps, that its rules do not keep from such a node
            shapes = ", ".join(_shape_text(self.values.get(v)) if v else "-" for v in node.inputs)
            raise NodeError(
                f"{node.op_type} node {name!r} cannot take operands of shapes {shapes}: {type(error).__name__}: {error}"
            ) from error
        finally:
            self.g.node = outer
        for value, result in zip(node.outputs, results, strict=False):
            self.values[value] = result

    def opset_of(self, node: ir.Node) -> int:
        """The opset version that ``node`` is written for."""
        domain = "" if node.domain == "ai.onnx" else node.domain
        return node.version or self.opsets.get(domain, 1)

    def _results(self, node: ir.Node) -> Sequence[Known]:
        opset = self.opset_of(node)
        inputs = [None if v is None else self.values.get(v, UNKNOWN) for v in node.inputs]
        attributes = attribute_values(node)
        check_schema(node.domain, node.op_type, opset, self.g.node, attributes, inputs)
        if node.op_type == "If" and node.domain in ("", "ai.onnx"):
            return import_if(self, node, inputs)
        if node.op_type in ("Loop", "Scan") and node.domain in ("", "ai.onnx"):
            return (import_loop if node.op_type == "Loop" else import_scan)(self, node, inputs)
        handler = handler_for(node.domain, node.op_type, opset)
        used = max((i + 1 for i, v in enumerate(node.outputs) if v.name), default=0)
        arrays = [(v, x) for v, x in zip(node.inputs, inputs, strict=True) if v and isinstance(x, np.ndarray)]
        names = {id(x): str(v.name) for v, x in arrays}
        context = OpContext(self.g, node.op_type, opset, attributes, used, names)
        known = [x for x in inputs if not isinstance(x, Unknown)]
        if handler is not None and len(known) == len(inputs):
            checked = check(context, handler, known)
            if self.check_indices:
                inputs = list(checked_indices(context, checked, known))
        constants = [x for x in inputs if x is None or isinstance(x, np.ndarray)]
        if len(constants) == len(inputs) and node.op_type != "Constant" and foldable(node):
            folded = evaluate(node, constants, opset)
            if folded is not None:
                return folded
        if handler is None:
            body = function_body(node, opset, inputs)
            if body is None:
                raise UnsupportedOperatorError(
                    f"operator {node.domain or 'ai.onnx'}.{node.op_type} (opset {opset}) of node {self.g.node!r} has "
                    "no handler: register one with landbridge.ops.registry.operator, or rewrite the model without it"
                )
            return self._run_function(body, node, inputs)
        if any(isinstance(x, Unknown) for x in inputs):
            return [UNKNOWN] * len(node.outputs)
        result = handler(context, *inputs)
        results = [result] if isinstance(result, np.ndarray | SSAValue) else list(result)
        return [_known_if_empty(context, x) for x in results]

    def _run_function(self, body: ir.Function, node: ir.Node, inputs: Sequence[Known | None]) -> list[Known]:
        """Import the definition of an operator by other operators."""
        inner = Importer(self.g, body.opset_imports, self.check_indices)
        inner.problems = self.problems
        for formal, value in zip(body.inputs, inputs, strict=False):
            if value is not None:
                inner.values[formal] = value
        inner.run_graph(body)
        return [inner.values[v] for v in body.outputs]

    def own_outputs(self, values: Sequence[Known]) -> list[SSAValue]:
        """Values to return: each computed here and in a buffer of its own, so an input or constant is copied."""
        owned: list[SSAValue] = []
        taken: set[SSAValue] = set()
        for value in values:
            result = self.g.constant(value) if isinstance(value, np.ndarray) else value
            if isinstance(result, Unknown):
                raise CompileError("an output is unknown although nothing was reported")
            root = _root(result)
            if not self.g.made(root) or isinstance(value, np.ndarray) or root in taken:
                result = self.g.elementwise("copy", [result], lambda s, v: v)
                root = result
            taken.add(root)
            owned.append(result)
        return owned


def _known_if_empty(c: OpContext, x: Operand) -> Operand:
    """A tensor without elements is a constant."""
    if isinstance(x, SSAValue) and 0 in c.shape(x):
        return np.zeros(c.shape(x), numpy_dtype(c.dtype(x)))
    return x


def _shape_text(x: Any) -> str:
    return str(x.shape if isinstance(x, np.ndarray) else shape_of(x.type) if isinstance(x, SSAValue) else "unknown")


def _root(value: SSAValue) -> Any:
    """What a chain of views looks at."""
    while isinstance(value.owner, ViewOp):
        value = value.owner.source
    return value
