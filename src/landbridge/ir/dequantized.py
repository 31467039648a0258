"""Records which values come from DequantizeLinear: bytes, with their scale and zero point."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from landbridge.records import record

_Operand: TypeAlias = SSAValue | np.ndarray[Any, Any]


@record(frozen=True, eq=False)
class Dequantized:
    """A dequantized value: ``result`` is ``(of - zero) * scale``.

    ``scale`` and ``zero`` have one element, or one for each element of ``axis``.
    """

    result: _Operand
    of: _Operand
    scale: np.ndarray[Any, Any]
    zero: np.ndarray[Any, Any] | None
    axis: int


class DequantizedValues:
    """Holds the dequantized values of a graph; constants are found by identity."""

    def __init__(self) -> None:
        self._known: dict[int | SSAValue, Dequantized] = {}

    def add(self, value: Dequantized) -> None:
        """Record ``value.result``, and keep it alive."""
        self._known[_key(value.result)] = value

    def find(self, value: _Operand) -> Dequantized | None:
        """Returns how ``value`` was dequantized; None if it was not."""
        return self._known.get(_key(value))


def _key(value: _Operand) -> int | SSAValue:
    return id(value) if isinstance(value, np.ndarray) else value
