"""Empties: decides whether code is made for sizes at which tensors have no elements."""

from __future__ import annotations

from landbridge.records import record


@record
class Empties:
    """Says which tensors may be empty.

    With ``allowed``, tensors whose sizes come from inputs may have no elements. Without it, code is made for sizes at
    which only tensors with data-dependent sizes may be empty. With ``cut``, inputs may be empty even where data decide
    sizes, and cut the program. ``has_empty`` says whether any tensor depended on this.
    """

    allowed: bool = True
    cut: bool = True
    has_empty: bool = False

    def least(self) -> int:
        """Returns the smallest extent of a tensor whose size differs between runs."""
        self.has_empty |= self.allowed
        return int(not self.allowed)
