"""How many nodes a model may unfold into: functions, loops and recurrent layers are compiled node by node."""

from __future__ import annotations

from dataclasses import field

from landbridge.errors import BudgetError
from landbridge.ir.limits import check_time, way_to_more_nodes
from landbridge.records import record

#: Nodes that a model may have once everything in it is unfolded. A compile of so many takes minutes.
MAX_NODES = 100_000
#: One in so many of them may be in loops that a condition ends: how often these run shows only as they are walked, and
#: a walk to the end of the whole budget would take minutes.
_UNCOUNTED = 25


@record
class Budget:
    """What is left to one import: ``limit`` nodes in all, of which ``spent`` are taken."""

    limit: int = MAX_NODES
    spent: int = 0
    _walked: int = field(default=0, init=False)
    _walked_to: int = field(default=0, init=False)

    def spend(self, count: int, subject: str) -> None:
        """Take ``count`` nodes for ``subject``; raises BudgetError where fewer are left."""
        check_time(subject)
        self.foresee(count, subject)
        self.spent += count

    def foresee(self, count: int, subject: str) -> None:
        """Raise BudgetError where fewer than ``count`` nodes are left for ``subject``; none are taken."""
        if self.spent + count > self.limit:
            raise BudgetError(
                f"{subject} unfolds into {count} nodes, where the model has {self.spent} already; it may have "
                f"{self.limit} in all: make loops and sequences shorter, carry state from run to run, or "
                f"{way_to_more_nodes()}"
            )

    def walk(self, began: int, subject: str) -> None:
        """Count what was spent since ``spent`` was ``began`` as nodes of the loop ``subject``, which its condition
        ends.

        Called after each iteration. What a loop inside has counted is not counted again. Raises BudgetError for too
        many.
        """
        self._walked += max(0, self.spent - max(began, self._walked_to))
        self._walked_to = self.spent
        if self._walked > self.limit // _UNCOUNTED:
            raise BudgetError(
                f"{subject}, which its condition ends, has unfolded into {self._walked} nodes (with others of the "
                "kind) "
                f"and goes on; such loops may have {self.limit // _UNCOUNTED} of the {self.limit} in all, as nobody "
                "can tell ahead how many they need: end it sooner, give a trip count and a condition that stays true, "
                f"or {way_to_more_nodes()}"
            )
