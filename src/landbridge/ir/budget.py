"""Budget: the number of nodes that functions, loops and recurrent layers of a model may unfold into. SearchBudget: the
number that may be imported while a program is searched.
"""

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
#: The nodes that a search may import beside the first walk: these, and as many times those of the model. Importing a
#: thousand nodes takes about a second.
_SEARCHED, _TIMES_SEARCHED = 10_000, 6
#: The nodes that may be imported to find the programs for the values of inputs that choose one.
OF_CHOICES = 50_000
#: What a walk takes beside its nodes, as a number of nodes.
_OF_A_WALK = 16


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


class SearchEndedError(BudgetError):
    """Raised when a search for a program of a model has imported as many nodes as it may."""


@record
class SearchBudget:
    """Counts the nodes that walks import while they search a program of one model, with those of separate bodies.

    ``limit``: the walk that passes it is the last one. ``spent``: the nodes imported so far.
    """

    limit: int
    spent: int = 0

    @staticmethod
    def for_model(nodes: int) -> SearchBudget:
        """Returns the budget of the search for one program of a model that has ``nodes``."""
        return SearchBudget(_SEARCHED + (1 + _TIMES_SEARCHED) * nodes)

    def begin_walk(self) -> None:
        """Raises SearchEndedError if the search may not walk the model, or a part of it, once more."""
        if self.spent > self.limit:
            raise SearchEndedError(
                f"the search for sizes with which the model can be compiled ended after importing {self.spent} nodes, "
                "of the model and of parts of it; state what it searches: sizes by shapes= or dims=, values of inputs "
                "by constants="
            )

    def end_walk(self, nodes: int) -> None:
        """Count a walk that has imported ``nodes``."""
        self.spent += nodes + _OF_A_WALK
