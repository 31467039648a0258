"""Dimensions that the data decide: names that no other has, and the ranges that were stated or found for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from landbridge.ir.empties import Empties
from landbridge.sizes.dim import identifier
from landbridge.sizes.size import LARGEST_EXTENT, Extent, dimension


class DataDimensions:
    """Makes them for one module. ``declared``: extents by name, None where each has to be a number; ``reads``: whether
    values that are computed may become dimensions; ``hosts``: whether nodes run on the host, where there is a function
    for them, that have to know what they cannot; ``all_names`` gets the names of all that are made; those of
    ``not_empty`` are at least 1. ``empties``: of sizes that no data decide. None is called as one of ``reserved``."""

    def __init__(
        self,
        declared: Mapping[str, Extent] | None = None,
        reads: bool = False,
        all_names: set[str] | None = None,
        not_empty: Collection[str] = (),
        hosts: bool = False,
        empties: Empties | None = None,
        reserved: Collection[str] = (),
    ) -> None:
        #: Those that code is made for at least 1 of.
        self.not_empty = not_empty
        self._declared_sizes = declared
        self._names: set[str] = set()
        self._reserved = frozenset(reserved)
        self._all_names = set() if all_names is None else all_names
        self.reads = reads and declared is not None
        self.hosts = hosts and declared is not None
        #: Whether there was a node that ``hosts`` would have run.
        self.might_host = False
        #: Whether there was a value that might have become dimensions, had ``reads`` said so.
        self.might_read = False
        #: Those that numbers in the program suppose to be at least 1.
        self.supposed: set[str] = set()
        #: Whether tensors may have no elements where data decide how many they have.
        self.may_be_empty = not not_empty
        self.empties = empties or Empties(allowed=False)

    @property
    def names(self) -> frozenset[str]:
        """Of all that were made."""
        return frozenset(self._names)

    @property
    def are_legal(self) -> bool:
        """Whether there may be any."""
        return self._declared_sizes is not None

    def new(self, name: str, low: int = 0, high: int = LARGEST_EXTENT) -> Extent:
        """A dimension called ``name``, or like it; from 0, for the data may decide that there is nothing."""
        name = unique = identifier(name)
        number = 1
        while unique in self._names or unique in self._reserved:
            number += 1
            unique = f"{name}_{number}"
        self._names.add(unique)
        self._all_names.add(unique)
        declared = (self._declared_sizes or {}).get(unique)
        low = 1 if low == 0 and unique in self.not_empty else low
        return dimension(unique, low, high) if declared is None else declared
