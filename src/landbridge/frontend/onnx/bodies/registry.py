"""Operators of other domains than ONNX's own, each defined by a body of ONNX's operators for the node at hand.

A definition is a function that gets a ``NodeFacts`` and returns the text of a body in the syntax of ``onnx.parser``::

    @defined("com.microsoft", "BiasGelu", "A, B", "C")
    def bias_gelu(n: NodeFacts) -> str:
        return "sum = Add (A, B)  C = Gelu (sum)"

It states the names of inputs and outputs. A last input ``*X`` stands for ``X0``, ``X1``, ... A body reads no input that
the node leaves out, and makes those of the outputs that it can.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import onnx
import onnx_ir as ir
from xdsl.ir import SSAValue

from landbridge.errors import UnsupportedOperatorError
from landbridge.frontend.onnx.attributes import attribute_values
from landbridge.ir.types import dtype_of, shape_of
from landbridge.ops.extent_arrays import array_dtype
from landbridge.plugins import import_modules
from landbridge.sizes.size import Extent

#: The opset that bodies are written for.
BODY_OPSET = 24

#: The statements of a body; None for inputs that the operator's host function is for.
Definition: TypeAlias = Callable[["NodeFacts"], str | None]
_D = TypeVar("_D", bound=Definition)


class _Registered(NamedTuple):
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    definition: Definition


class NodeBody(NamedTuple):
    """The body of a node, and the values of its inputs: those of the node, and constants of the body."""

    function: ir.Function
    inputs: list[Any]


_DEFINED: dict[tuple[str, str], _Registered] = {}


def defined(domain: str, op_type: str, inputs: str, outputs: str) -> Callable[[_D], _D]:
    """Register a definition of ``op_type``; ``inputs`` and ``outputs`` are names, in order, between commas."""

    def register(definition: _D) -> _D:
        names = [tuple(name.strip() for name in text.split(",")) for text in (inputs, outputs)]
        _DEFINED[domain, op_type] = _Registered(names[0], names[1], definition)
        return definition

    return register


def is_defined(domain: str, op_type: str) -> bool:
    """Whether there is a definition of the operator."""
    _load_families()
    return (domain, op_type) in _DEFINED


def defined_operators() -> list[tuple[str, str]]:
    """(domain, type) of every operator that has a definition, sorted."""
    _load_families()
    return sorted(_DEFINED)


def body_of(node: ir.Node, inputs: Sequence[Any]) -> NodeBody | None:
    """The body of ``node``, of ``inputs`` as a walk has them; None where nothing defines its operator.

    Raises UnsupportedOperatorError for a form of the operator that its definition has no body for.
    """
    _load_families()
    registered = _DEFINED.get((node.domain, node.op_type))
    if registered is None:
        return None
    names = _input_names(registered.inputs, len(inputs))
    wanted = [name for name, value in zip(registered.outputs, node.outputs, strict=False) if value.name]
    values = [*zip(names, node.inputs, strict=False), *zip(registered.outputs, node.outputs, strict=False)]
    declared = {name: value.shape for name, value in values if value is not None and value.shape is not None}
    facts = NodeFacts(node, dict(zip(names, inputs, strict=False)), wanted, declared)
    lines = registered.definition(facts)
    if lines is None:
        return None
    created = _parsed(node.op_type, [*names, *facts.constants], registered.outputs, lines)
    missing = sorted({*wanted} - {name for inner in created.node for name in inner.output})
    if missing:
        raise UnsupportedOperatorError(
            f"{node.domain}.{node.op_type} node {node.name!r}: output {', '.join(missing)} is not made; use the others"
        )
    del created.output[:]
    created.output.extend(registered.outputs[: len(node.outputs)])
    for name in created.output:
        if name not in wanted:
            created.node.append(onnx.helper.make_node("Constant", [], [f"no_{name}"], value_int=0))
    created.output[:] = [name if name in wanted else f"no_{name}" for name in created.output]
    given = [*inputs, *[None] * (len(names) - len(inputs)), *facts.constants.values()]
    return NodeBody(ir.serde.deserialize_function(created), given)


class NodeFacts:
    """A node as its definition sees it: which inputs it has, their dtypes and shapes, its attributes, and by ``wanted``
    the names of the outputs that are read."""

    def __init__(
        self,
        node: ir.Node,
        inputs: dict[str, Any],
        wanted: Sequence[str] = (),
        declared: Mapping[str, ir.Shape] | None = None,
    ) -> None:
        self._subject = f"{node.domain}.{node.op_type} node {node.name!r}"
        self._inputs, self._attributes = inputs, attribute_values(node)
        self._declared = declared or {}
        #: Arrays that the body reads by name.
        self.constants: dict[str, np.ndarray[Any, Any]] = {}
        self.outputs, self.wanted = len(wanted), frozenset(wanted)

    def has(self, *names: str) -> bool:
        """Whether the node has all of these inputs."""
        return all(self._inputs.get(name) is not None for name in names)

    def variadic(self, name: str) -> list[str]:
        """Names of the inputs that ``*name`` stands for."""
        return [each for each in self._inputs if each.startswith(name) and each[len(name) :].isdigit()]

    def attribute(self, name: str, default: Any) -> Any:
        """A value of the type of ``default``."""
        return self._attributes.get(name, default)

    def shape(self, name: str) -> tuple[Extent, ...]:
        """The shape of an input that is there."""
        value = self._inputs[name]
        return value.shape if isinstance(value, np.ndarray) else shape_of(self._graph_value(name).type)

    def dtype(self, name: str) -> str:
        """The dtype of an input that is there, as ``float32``."""
        value = self._inputs[name]
        return array_dtype(value) if isinstance(value, np.ndarray) else dtype_of(self._graph_value(name).type)

    def is_same_shape(self, input: str, output: str) -> bool:
        """Whether the model declares that ``output`` has the shape of ``input``, and says all of it."""
        shapes = [self._declared.get(name) for name in (input, output)]
        return None not in shapes and shapes[0] == shapes[1]

    def is_computed(self, name: str) -> bool:
        """Whether an input's elements are known when the model runs only: no numbers, nor formulas of dimensions."""
        return not isinstance(self._inputs[name], np.ndarray)

    def constant(self, name: str) -> np.ndarray[Any, Any]:
        """The elements of an input, which have to be known."""
        value = self._inputs[name]
        if not isinstance(value, np.ndarray) or value.dtype == object:
            raise self.unsupported(f"{name} is computed when the model runs; make it a constant")
        return value

    def array(self, name: str, value: np.ndarray[Any, Any]) -> str:
        """``name``, by which the body reads ``value``."""
        self.constants[name] = value
        return name

    def unsupported(self, why: str) -> UnsupportedOperatorError:
        """The error that this form of the operator is none that is known."""
        return UnsupportedOperatorError(f"{self._subject}: {why}")

    def _graph_value(self, name: str) -> SSAValue:
        value = self._inputs[name]
        if not isinstance(value, SSAValue):
            raise self.unsupported(f"its input {name} could not be compiled")
        return value


def number(value: float) -> str:
    """A float as the text of a body has it."""
    return repr(float(value))


def integer_list(values: Sequence[int]) -> str:
    """Integers as the text of a body has them."""
    return f"[{', '.join(str(int(v)) for v in values)}]"


def like(name: str, value: float, dtype_source: str) -> str:
    """A statement that makes ``name`` the number ``value`` in the dtype of ``dtype_source``."""
    return f"{name}_f = Constant <value_float = {number(value)}> () {name} = CastLike ({name}_f, {dtype_source})"


def _input_names(formal: Sequence[str], count: int) -> list[str]:
    if not formal[-1].startswith("*"):
        return list(formal)
    fixed, last = formal[:-1], formal[-1][1:]
    return [*fixed, *(f"{last}{i}" for i in range(count - len(fixed)))]


def _parsed(op_type: str, inputs: Sequence[str], outputs: Sequence[str], lines: str) -> onnx.FunctionProto:
    text = f"""<domain: "body", opset_import: ["": {BODY_OPSET}, "com.microsoft": 1, "ai.onnx.ml": 3, "landbridge": 1]>
        {op_type} ({", ".join(inputs)}) => ({", ".join(outputs)}) {{ {lines} }}"""
    return onnx.parser.parse_function(text)


@cache
def _load_families() -> None:
    """Import every file of this package, so that its definitions register."""
    import_modules(__name__.rpartition(".")[0])
