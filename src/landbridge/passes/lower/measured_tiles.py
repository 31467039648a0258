"""Tiles of kernels that were measured on a machine, in place of those with the least predicted cycles."""

from __future__ import annotations

from typing import Protocol

from xdsl.dialects import func

from landbridge.records import record
from landbridge.targets import Target

#: Rows and columns of a register tile.
Tile = tuple[int, int]


@record(frozen=True)
class MeasuredTiles:
    """The ``fastest`` tile of a kernel, None for the predicted one, and the ``seconds`` that a call of the kernel took
    with each measured tile.
    """

    fastest: Tile | None
    seconds: tuple[tuple[Tile, float], ...]


class TileChoice(Protocol):
    """Knows tiles that were measured."""

    def measured(self, function: func.FuncOp, target: Target) -> MeasuredTiles | None:
        """Returns what was measured for the PrimFunc ``function`` on ``target``; None if nothing was."""
