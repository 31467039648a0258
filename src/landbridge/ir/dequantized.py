"""Records which values come from DequantizeLinear: bytes, with their scale and zero point."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from landbridge.identity_map import IdentityMap
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
    """Holds the dequantized values of a graph, found by identity."""

    def __init__(self) -> None:
        self._known: IdentityMap[_Operand, Dequantized] = IdentityMap()

    def __len__(self) -> int:
        return len(self._known)

    def add(self, value: Dequantized) -> None:
        """Record ``value.result``, and keep it alive."""
        self._known[value.result] = value

    def find(self, value: _Operand) -> Dequantized | None:
        """Returns how ``value`` was dequantized; None if it was not."""
        return self._known.get(value)
