"""Values that are numbers of a byte, scaled: what DequantizeLinear was given."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from landbridge.records import record

_Operand: TypeAlias = SSAValue | np.ndarray[Any, Any]


@record(frozen=True, eq=False)
class Dequantized:
    """``result`` is ``(of - zero) * scale``; ``scale`` and ``zero`` are one, or one for each element of ``axis``."""

    result: _Operand
    of: _Operand
    scale: np.ndarray[Any, Any]
    zero: np.ndarray[Any, Any] | None
    axis: int


class DequantizedValues:
    """The dequantized values of a graph, constants among them by identity."""

    def __init__(self) -> None:
        self._known: dict[int | SSAValue, Dequantized] = {}

    def add(self, value: Dequantized) -> None:
        """Remember ``value.result``, which is kept alive."""
        self._known[_key(value.result)] = value

    def find(self, value: _Operand) -> Dequantized | None:
        """What ``value`` was dequantized from."""
        return self._known.get(_key(value))


def _key(value: _Operand) -> int | SSAValue:
    return id(value) if isinstance(value, np.ndarray) else value
