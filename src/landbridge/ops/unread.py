"""Declares the operands of handlers whose elements decide nothing: the handler only passes the array on.

Equal layers differ in their weights alone. What a handler built for one weight holds for another of the same shape and
dtype if it read no element of it (``frontend/onnx/repeated_nodes.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from landbridge.operators import Handler

_H = TypeVar("_H", bound=Handler)

#: An array of more elements counts as a weight; handlers may read the elements of smaller ones, as of a scale.
MOST_READ = 8
_ALL = range(1 << 16)

_UNREAD: dict[Handler, range | tuple[int, ...]] = {}


def unread(*positions: int) -> Callable[[_H], _H]:
    """Declares that a handler reads no element of its operands at ``positions`` (of no operand if none are given) which
    are arrays of more than ``MOST_READ`` elements. It stands directly above ``def``, or above ``@accuracy``.

    Such an operand may become a constant of the graph as it is, or reshaped; what depends on it must not depend on
    anything but its shape and dtype.
    """

    def declare(handler: _H) -> _H:
        _UNREAD[handler] = positions or _ALL
        return handler

    return declare


def is_unread(handler: Handler, position: int) -> bool:
    """Returns whether ``handler`` reads no element of a weight that is its operand at ``position``."""
    return position in _UNREAD.get(handler, ())
