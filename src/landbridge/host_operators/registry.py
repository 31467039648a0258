"""The registry of host operators, by (domain, type, version) and by the name that programs call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias, TypeVar

import numpy as np

from landbridge.dtypes import dtype_name, numpy_dtype
from landbridge.errors import BindError, CompileError
from landbridge.plugins import import_modules
from landbridge.records import record
from landbridge.sizes.size import Extent

Array: TypeAlias = np.ndarray[Any, Any]
#: Takes arrays (None where an input is left out) and attributes by name; gives an array, or one for each output.
Function: TypeAlias = Callable[..., Any]
#: What a function with a state gives: the function of the arrays.
Draw: TypeAlias = Callable[..., Any]
_F = TypeVar("_F", bound=Function)

#: What the names begin with that programs call them by.
HOST_PREFIX = "host:"


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

    domain: str
    op_type: str
    since: int
    function: Function
    results: Callable[..., Results] | None
    in_order: bool

    @property
    def name(self) -> str:
        """Returns the name that programs call."""
        return f"{HOST_PREFIX}{self.domain or 'ai.onnx'}.{self.op_type}@{self.since}"

    @property
    def is_built_in(self) -> bool:
        """Returns whether it belongs to this package."""
        return self.function.__module__.startswith(f"{__package__}.")

    def bound(self, attributes: Mapping[str, Any]) -> Callable[..., list[Array]]:
        """Returns the function of arrays that a node with ``attributes`` calls; it returns its results as a list."""
        created = self.function(**attributes) if self.in_order else None

        def call(*inputs: Array | None) -> list[Array]:
            found = self.function(*inputs, **attributes) if created is None else created(*inputs)
            several = isinstance(found, tuple | list)
            return [np.asarray(each) for each in found] if several else [np.asarray(found)]

        return call


_OPERATORS: dict[tuple[str, str], dict[int, HostOperator]] = {}


def host_operator(
    domain: str,
    *op_types: str,
    since: int = 1,
    results: Callable[..., Results] | None = None,
    in_order: bool = False,
) -> Callable[[_F], _F]:
    """Registers a numpy function for the operators ``op_types`` of ``domain`` from opset ``since`` on.

    The function gets the inputs as arrays it must not change, None for one that a node leaves out, and the attributes
    by name: int, float, str, lists of those, which tensors of one axis are given as. It returns an array, or one for
    each output in order. It is used where Landbridge has no kernel, which is a FallbackWarning once a compile.

    ``results`` says what the outputs are: called with a HostValue for each input (``shape``, ``dtype``, and ``value``
    where it is a constant) and the attributes, it returns ``(shape, dtype)`` for each output. None in a shape is an
    extent that the data decide: the program is cut there, and what follows is of open size. Left out, the function is
    called with zeros when a model is compiled, and a run in which it gives other shapes is refused; where extents of
    inputs are open, those of outputs are the data's.

    ``in_order``: for a function with a state, as random numbers have it; it is called with the attributes once for each
    place of a Session that uses it, and returns the function of the arrays.

    Raises CompileError where an operator of that version is registered already.
    """
    domain = "" if domain == "ai.onnx" else domain

    def register(function: _F) -> _F:
        for op_type in op_types:
            versions = _OPERATORS.setdefault((domain, op_type), {})
            before = versions.get(since)
            if before is not None and _location(before.function) != _location(function):
                raise CompileError(
                    f"two host operators for {domain or 'ai.onnx'}.{op_type} since opset {since}: "
                    f"{'.'.join(_location(before.function))} and {'.'.join(_location(function))}; give one another "
                    "`since`"
                )
            versions[since] = HostOperator(domain, op_type, since, function, results, in_order)
        return function

    return register


def find(domain: str, op_type: str, opset: int) -> HostOperator | None:
    """Returns the newest operator that is not newer than ``opset``; None where there is none."""
    _load_families()
    versions = _OPERATORS.get(("" if domain == "ai.onnx" else domain, op_type), {})
    known = [since for since in versions if since <= opset]
    return versions[max(known)] if known else None


def host_operators() -> list[HostOperator]:
    """Returns all operators, by domain, type and version."""
    _load_families()
    return [_OPERATORS[key][since] for key in sorted(_OPERATORS) for since in sorted(_OPERATORS[key])]


def called(name: str, module: str = "") -> HostOperator | None:
    """Returns the operator that programs call ``name``; None where that is not the name of one.

    Raises BindError, which names ``module`` where its function was, where it is not registered here.
    """
    if not name.startswith(HOST_PREFIX):
        return None
    _load_families()
    for versions in _OPERATORS.values():
        for operator in versions.values():
            if operator.name == name:
                return operator
    where = f", as {module} did when it was compiled: import that" if module else ""
    raise BindError(
        f"the program needs the host operator {name.removeprefix(HOST_PREFIX)!r}, which is not registered in this "
        f"process; register its function with landbridge.host_operator before the Session is made{where}"
    )


def zeros_of(value: HostValue | None) -> Array | None:
    """Returns zeros of the shape and dtype of ``value``, all of whose extents are numbers; its own array where it is
    known.
    """
    if value is None or value.value is not None:
        return None if value is None else value.value
    return np.zeros(value.shape, numpy_dtype(value.dtype))


def of_arrays(arrays: Sequence[Array]) -> list[tuple[tuple[int, ...], str]]:
    """Returns the shape and dtype name of each."""
    return [(array.shape, dtype_name(array.dtype)) for array in arrays]


def _location(function: Function) -> tuple[str, str]:
    return function.__module__, function.__qualname__


@cache
def _load_families() -> None:
    """Imports every file of this package, so that its operators register."""
    import_modules(__name__.rpartition(".")[0])
