"""What a translation is given, and the table of translations by operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeVar

import numpy as np

from landbridge.array_type import Array
from landbridge.first_tier.call_builder import CallBuilder, ShapedValue, TensorType
from landbridge.first_tier.not_taken import NotTakenError
from landbridge.first_tier.onnx_file import AttributeValue, Node, OnnxGraph
from landbridge.records import record

_T = TypeVar("_T")


@record(frozen=True, eq=False)
class Request:
    """A node to translate: its ``inputs``, None for those it leaves out, and the opset of its model."""

    builder: CallBuilder
    node: Node
    inputs: tuple[ShapedValue | None, ...]
    opset: int
    #: Which outputs somebody reads.
    used: tuple[bool, ...]
    _read: set[str | int] = field(default_factory=set, init=False)

    def given(self, name: str) -> AttributeValue | None:
        """Returns attribute ``name``, None where the node has none of that name."""
        self._read.add(name)
        found = self.node.attributes.get(name)
        if isinstance(found, OnnxGraph):
            raise NotTakenError(f"{self.node.op_type} with a graph")
        return found

    def ignore(self, *names: str | int) -> None:
        """Says that attributes of these names, and inputs of these numbers, do not change the result."""
        self._read.update(names)

    def check_all_read(self) -> None:
        """Raises NotTakenError for an attribute or input that the translation does not know, as of a later opset."""
        unread = [name for name in self.node.attributes if name not in self._read]
        unread += [
            f"input {number}" for number, x in enumerate(self.inputs) if x is not None and number not in self._read
        ]
        if unread:
            raise NotTakenError(f"{self.node.op_type} with {', '.join(unread)}")

    def input(self, number: int) -> ShapedValue:
        """Returns an input that the operator requires; raises NotTakenError where it is absent."""
        found = self.optional(number)
        if found is None:
            raise NotTakenError(f"{self.node.op_type} without input {number}")
        return found

    def optional(self, number: int) -> ShapedValue | None:
        """Returns an input, None where it is absent."""
        self._read.add(number)
        return self.inputs[number] if number < len(self.inputs) else None

    def known(self, number: int) -> Array:
        """Returns the elements of an input that shapes depend on; raises NotTakenError where a run computes them."""
        found = self.input(number).constant
        if found is None:
            raise NotTakenError(f"{self.node.op_type} whose input {number} decides shapes and is computed by a run")
        return found

    def integers(self, name: str, number: int | None, default: Sequence[int] | None = None) -> list[int] | None:
        """Returns the integers of attribute ``name``, else of input ``number``, else ``default``."""
        given = self.given(name)
        if given is not None:
            if not isinstance(given, list) or not all(isinstance(each, int) for each in given):
                raise NotTakenError(f"attribute {name!r} of {self.node.op_type} is no list of integers")
            return [int(each) for each in given]
        if number is not None and self.optional(number) is not None:
            return [int(each) for each in self.known(number).reshape(-1)]
        return None if default is None else list(default)

    def attribute(self, name: str, default: _T) -> _T:
        """Returns attribute ``name`` as the type of ``default``, which stands for it where it is absent.

        Floats are of float32, as files have them.
        """
        given: Any = self.given(name)
        if given is None:
            return type(default)(np.float32(default)) if isinstance(default, float) else default
        if isinstance(default, float) and isinstance(given, int):
            given = float(given)
        if type(given) is not type(default):
            raise NotTakenError(f"attribute {name!r} of {self.node.op_type} is of type {type(given).__name__}")
        return given

    def axis(self, axis: int, rank: int) -> int:
        """Returns ``axis`` counted from the first one; raises NotTakenError where there is none."""
        if not -rank <= axis < rank:
            raise NotTakenError(f"axis {axis} of {rank}")
        return axis % rank

    def floats(self, *values: ShapedValue | None) -> str:
        """Returns the dtype name of ``values``, float32 or float64; raises NotTakenError for any other."""
        found = {value.dtype for value in values if value is not None}
        if len(found) != 1 or not found <= {"float32", "float64"}:
            raise NotTakenError(f"{self.node.op_type} of {', '.join(sorted(found))}")
        return found.pop()

    def call(
        self,
        kernel: str,
        operands: Sequence[ShapedValue | None],
        results: Sequence[TensorType],
        attributes: Mapping[str, object] | None = None,
        *,
        overwrites: bool = False,
    ) -> tuple[ShapedValue, ...]:
        """Returns the results of ``kernel`` (``CallBuilder.call``)."""
        return self.builder.call(kernel, operands, results, attributes, overwrites=overwrites)


#: Returns the outputs of a node; may return fewer than it declares where nobody reads the others.
Translation = Callable[[Request], Sequence[ShapedValue]]

TRANSLATIONS: dict[str, Translation] = {}


def translates(*operators: str) -> Callable[[Translation], Translation]:
    """Registers the function it decorates as the translation of ``operators``."""

    def add(function: Translation) -> Translation:
        for operator in operators:
            TRANSLATIONS[operator] = function
        return function

    return add
