"""Budget: the number of nodes that functions, loops and recurrent layers of a model may unfold into."""

from __future__ import annotations

from dataclasses import field

from landbridge.errors import BudgetError
from landbridge.ir.limits import check_time, way_to_more_nodes
from landbridge.records import record

#: The most nodes that an unfolded model may have. Compiling so many takes minutes.
MAX_NODES = 100_000
#: Loops that end by a condition may use this fraction of the budget. Their trip count shows only while they are
#: unfolded, and unfolding the whole budget would take minutes.
_UNCOUNTED = 25


@record
class Budget:
    """Counts the nodes of one import: at most ``limit`` in all, of which ``spent`` are used."""

    limit: int = MAX_NODES
    spent: int = 0
    _walked: int = field(default=0, init=False)
    _walked_to: int = field(default=0, init=False)

    def spend(self, count: int, subject: str) -> None:
        """Count ``count`` nodes for ``subject``; raises BudgetError if fewer are left."""
        check_time(subject)
        self.foresee(count, subject)
        self.spent += count

    def foresee(self, count: int, subject: str) -> None:
        """Raises BudgetError if fewer than ``count`` nodes are left for ``subject``; counts nothing."""
        if self.spent + count > self.limit:
            raise BudgetError(
                f"{subject} unfolds into {count} nodes, where the model has {self.spent} already; it may have "
                f"{self.limit} in all: make loops and sequences shorter, carry state from run to run, or "
                f"{way_to_more_nodes()}"
            )

    def walk(self, began: int, subject: str) -> None:
        """Count the nodes spent since ``spent`` was ``began`` towards the loop ``subject``, which ends by a condition.

        Called after each iteration. Nodes that an inner loop has counted are not counted again. Raises BudgetError for
        too many.
        """
        self._walked += max(0, self.spent - max(began, self._walked_to))
        self._walked_to = self.spent
        if self._walked > self.limit // _UNCOUNTED:
            raise BudgetError(
                f"{subject}, which its condition ends, has unfolded into {self._walked} nodes (with others of the "
                "kind) "
                f"and goes on; such loops may have {self.limit // _UNCOUNTED} of the {self.limit} in all, as the "
                "number that they need is unknown: end it sooner, give a trip count and a condition that stays true, "
                f"or {way_to_more_nodes()}"
            )
