"""NodeFacts: a node as a definition sees it, and the numbers and statements that bodies are written with.

A definition of operators of another domain than ONNX's own is a function that gets a ``NodeFacts`` and returns the text
of a body of ONNX's operators, in the syntax of ``onnx.parser``::

    @definition("com.microsoft", "BiasGelu", inputs="A, B", outputs="C")
    def bias_gelu(n: NodeFacts) -> str:
        return "sum = Add (A, B)  C = Gelu (sum)"
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from xdsl.ir import SSAValue

from landbridge.errors import UnsupportedOperatorError
from landbridge.frontend.onnx.attributes import attribute_values
from landbridge.ir.types import dtype_of, shape_of
from landbridge.ops.extent_arrays import array_dtype
from landbridge.sizes.size import Extent


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
        name = node.name or next((str(value.name) for value in node.outputs if value.name), "")
        self._subject = f"{node.domain or 'ai.onnx'}.{node.op_type} node {name!r}"
        self._inputs, self._attributes = inputs, attribute_values(node)
        self._declared = declared or {}
        #: Inputs whose elements were read.
        self.reads: list[np.ndarray[Any, Any]] = []
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
        self.reads.append(value)
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
