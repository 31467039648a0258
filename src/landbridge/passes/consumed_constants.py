"""Drops constants that a pass replaces while it runs, so that a model's weights are never held twice."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from landbridge.ir.graph_ops import ConstantOp
from landbridge.ir.module import IRModule
from landbridge.ir.traversal import operations_of


class ConsumedConstants:
    """Removes constants of ``module``, and operations that load them, once no operation uses them any more."""

    def __init__(self, module: IRModule) -> None:
        self._constants = module.constants
        self._loads: dict[str, list[ConstantOp]] = {}
        for op in operations_of(module.main, ConstantOp):
            self._loads.setdefault(op.symbol_name, []).append(op)

    def keep(self, symbol: str) -> None:
        """Retain ``symbol``, which new operations load."""
        self._loads.pop(symbol, None)

    def drop(self, values: Iterable[SSAValue]) -> None:
        """Remove those of the constants ``values`` that nothing uses."""
        for value in values:
            if isinstance(value.owner, ConstantOp):
                symbol = value.owner.symbol_name
                loads = self._loads.get(symbol)
                if loads and all(load.result.first_use is None for load in loads):
                    del self._loads[symbol]
                    self._constants.pop(symbol, None)
                    for load in loads:
                        Rewriter.erase_op(load)
