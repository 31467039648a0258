"""Empties: whether code is made for sizes at which tensors have no elements."""

from __future__ import annotations

from landbridge.records import record


@record
class Empties:
    """``allowed``: tensors whose sizes inputs say may have no elements; else code is for sizes at which all of them
    have, but those that data make. ``cut``: inputs may have none where data decide sizes too, and cut the program.
    ``has_empty``: whether there was one to which that mattered."""

    allowed: bool = True
    cut: bool = True
    has_empty: bool = False

    def least(self) -> int:
        """The least extent of a tensor that may have fewer elements than another run's."""
        self.has_empty |= self.allowed
        return int(not self.allowed)
