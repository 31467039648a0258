"""How many nodes a model may unfold into: functions, loops and recurrent layers are compiled node by node."""

from __future__ import annotations

from dataclasses import dataclass

from landbridge.errors import BudgetError

#: Nodes that a model may have once everything in it is unfolded. A compile of so many takes minutes.
MAX_NODES = 100_000


@dataclass
class Budget:
    """What is left to one import: ``limit`` nodes in all, of which ``spent`` are taken."""

    limit: int = MAX_NODES
    spent: int = 0

    def spend(self, count: int, what: str) -> None:
        """Take ``count`` nodes for ``what``; raises BudgetError where fewer are left."""
        self.foresee(count, what)
        self.spent += count

    def foresee(self, count: int, what: str) -> None:
        """Raise BudgetError where fewer than ``count`` nodes are left for ``what``; none are taken."""
        if self.spent + count > self.limit:
            raise BudgetError(
                f"{what} unfolds into {count} nodes, where the model has {self.spent} already; it may have "
                f"{self.limit} in all: make loops and sequences shorter, carry state from run to run, or "
                "compile(..., max_nodes=...) more"
            )
