"""What may implement an operator: kernels, definitions by other operators, and host operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np

from landbridge.array_type import Array
from landbridge.records import record
from landbridge.sizes.size import Extent

#: ``handler(context, *inputs) -> output or outputs``: an OpContext, and one Operand, or None, for each input.
Handler: TypeAlias = Callable[..., Any]

#: What a function with a state gives: the function of the arrays.
Draw: TypeAlias = Callable[..., Any]

#: What the names begin with by which programs call host operators.
HOST_PREFIX = "host:"

_OWN_MODULES = f"{__name__.partition('.')[0]}."


class Implementation(Protocol):
    """What implements ``op_type`` of ``domain`` (``""`` is ONNX's own) from the opset version ``since`` on, until an
    implementation of the same kind has a newer one.
    """

    #: What messages call this kind.
    NOUN: ClassVar[str]

    @property
    def domain(self) -> str: ...
    @property
    def op_type(self) -> str: ...
    @property
    def since(self) -> int: ...
    @property
    def function(self) -> Callable[..., Any]: ...


def is_built_in(implementation: Implementation) -> bool:
    """Returns whether ``implementation`` belongs to this package."""
    return implementation.function.__module__.startswith(_OWN_MODULES)


@record(frozen=True, eq=False)
class Kernel:
    """An operator that is compiled to kernels: ``function`` is its handler, which writes graph IR."""

    NOUN: ClassVar[str] = "kernel"

    domain: str
    op_type: str
    since: int
    function: Handler


@record(frozen=True, eq=False)
class Definition:
    """An operator that is compiled as other operators: ``function`` takes the facts of a node and returns the body.

    The body is ONNX text that reads ``inputs`` and makes ``outputs``; it is None for a form of the operator that is
    left to ONNX's own definition or to a host operator.
    """

    NOUN: ClassVar[str] = "definition"

    domain: str
    op_type: str
    since: int
    function: Callable[[Any], str | None]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@record(frozen=True, eq=False)
class HostValue:
    """The facts of an input that are known when the model is compiled; ``value`` where it is constant."""

    shape: tuple[Extent, ...]
    dtype: str
    value: Array | None = None


#: The shape and dtype name of each output; None is an extent that the data decide.
Results: TypeAlias = Sequence[tuple[Sequence[Extent | None], str]]


@record(frozen=True, eq=False)
class HostOperator:
    """An operator that runs as ``function``.

    ``results`` gets a HostValue for each input, None for one that is left out, and the attributes by name.
    ``in_order``: what a call gives depends on those before it; ``function`` then takes the attributes alone, once for
    each place that calls it, and gives the function of the arrays.
    """

    NOUN: ClassVar[str] = "host operator"

    domain: str
    op_type: str
    since: int
    function: Callable[..., Any]
    results: Callable[..., Results] | None
    in_order: bool

    @property
    def name(self) -> str:
        """Returns the name that programs call."""
        return f"{HOST_PREFIX}{self.domain or 'ai.onnx'}.{self.op_type}@{self.since}"

    def bound(self, attributes: Mapping[str, Any]) -> Callable[..., list[Array]]:
        """Returns the function of arrays that a node with ``attributes`` calls; it returns its results as a list."""
        created = self.function(**attributes) if self.in_order else None

        def call(*inputs: Array | None) -> list[Array]:
            found = self.function(*inputs, **attributes) if created is None else created(*inputs)
            several = isinstance(found, tuple | list)
            return [np.asarray(each) for each in found] if several else [np.asarray(found)]

        return call
