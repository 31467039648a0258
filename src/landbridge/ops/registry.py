"""Operators by (domain, type, version): a handler is registered beside its family and found by opset.

A handler takes an OpContext and one Operand (or None) for each input of the node, and returns one Operand, or a
sequence of them, for its outputs::

    @operator("Relu")
    def relu(c: OpContext, x: Operand) -> Operand: ...

    @operator("Softmax", since=13)   # another handler serves older opsets
    def softmax(c: OpContext, x: Operand) -> Operand: ...
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias, TypeVar

from landbridge.errors import CompileError
from landbridge.plugins import import_modules

#: ``handler(context, *inputs) -> output or outputs``.
Handler: TypeAlias = Callable[..., Any]
_H = TypeVar("_H", bound=Handler)

_HANDLERS: dict[tuple[str, str], dict[int, Handler]] = {}


def operator(*op_types: str, since: int = 1, domain: str = "") -> Callable[[_H], _H]:
    """Registers a handler for ``op_types`` of ``domain`` from opset ``since`` on, until a later one.

    Raises CompileError when an operator already has a handler of that version.
    """

    def register(handler: _H) -> _H:
        for op_type in op_types:
            versions = _HANDLERS.setdefault((domain, op_type), {})
            if since in versions and not _is_same(versions[since], handler):
                raise CompileError(
                    f"two handlers for {op_type} since opset {since}: {versions[since].__module__} "
                    f"and {handler.__module__}; give one of them another `since`"
                )
            versions[since] = handler
        return handler

    return register


def handler_for(domain: str, op_type: str, opset: int) -> Handler | None:
    """Returns the newest handler not newer than ``opset``; None when there is none."""
    _load_families()
    domain = "" if domain == "ai.onnx" else domain
    versions = _HANDLERS.get((domain, op_type), {})
    known = [v for v in versions if v <= opset]
    return versions[max(known)] if known else None


def operators() -> list[tuple[str, str]]:
    """Returns (domain, type) of every operator that has a handler, sorted."""
    _load_families()
    return sorted(_HANDLERS)


def handlers() -> dict[tuple[str, str, int], Handler]:
    """Returns every handler, by (domain, type, first opset)."""
    _load_families()
    return {(*key, since): handler for key, versions in _HANDLERS.items() for since, handler in versions.items()}


def _is_same(known: Handler, handler: Handler) -> bool:
    """Returns whether both are one function: its module may be imported again after an out-of-memory error."""
    return (known.__module__, known.__qualname__) == (handler.__module__, handler.__qualname__)


@cache
def _load_families() -> None:
    """Imports every file of this package, so that its handlers register."""
    import_modules(__name__.rpartition(".")[0])
