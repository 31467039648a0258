"""Question: a comparison of Sizes that the bounds of their dimensions leave open."""

from __future__ import annotations

from landbridge.records import record
from landbridge.sizes.terms import Terms


@record(frozen=True)
class Question:
    """Asks whether ``difference`` is at least 0, or, with ``equal``, 0. ``needed``: if it is not, no model can be run.

    ``broadcasts``: it is needed unless one of the two extents is 1, which then broadcasts to the other. ``fills``: if
    it is not, a tensor has no elements.
    """

    difference: Terms
    equal: bool = False
    needed: bool = False
    broadcasts: bool = False
    fills: bool = False
