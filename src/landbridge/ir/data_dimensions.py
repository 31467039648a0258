"""Dimensions whose sizes the data decide: unique names, with the ranges that were declared or derived for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from landbridge.ir.empties import Empties
from landbridge.ir.permissions import Permission, Permissions
from landbridge.sizes.dim import identifier
from landbridge.sizes.size import LARGEST_EXTENT, Extent, dimension


class DataDimensions:
    """Creates the data-dependent dimensions of one module.

    ``declared`` has extents by name, None for those that must be numbers. ``permissions``: whether computed values may
    become dimensions, and nodes that need unknown sizes may run on the host. ``all_names``
    collects the names of all dimensions that are created; those in ``not_empty`` are at least 1. ``empties`` applies to
    sizes that do not depend on data. No dimension gets a name in ``reserved``.
    """

    def __init__(
        self,
        declared: Mapping[str, Extent] | None = None,
        permissions: Permissions | None = None,
        all_names: set[str] | None = None,
        not_empty: Collection[str] = (),
        empties: Empties | None = None,
        reserved: Collection[str] = (),
    ) -> None:
        #: The dimensions for which code is made that requires at least 1.
        self.not_empty = not_empty
        self._declared_sizes = declared
        self._names: set[str] = set()
        self._reserved = frozenset(reserved)
        self._all_names = set() if all_names is None else all_names
        #: What the walk of the model may do, and what it has found a use for.
        self.permissions = permissions or Permissions()
        #: The dimensions that numbers in the program assume to be at least 1.
        self.supposed: set[str] = set()
        #: Whether tensors may be empty where data decide their element count.
        self.may_be_empty = not not_empty
        self.empties = empties or Empties(allowed=False)
        #: The dimensions whose expected sizes decided how something is computed.
        self.weighed: set[str] = set()

    def checkpoint(self) -> tuple[frozenset[str], frozenset[str]]:
        """Returns what ``restore`` takes."""
        return frozenset(self._names), frozenset(self.supposed)

    def restore(self, checkpoint: tuple[frozenset[str], frozenset[str]]) -> None:
        """Remove the dimensions that were created, and the assumptions that were made, since ``checkpoint``."""
        names, supposed = checkpoint
        self._names &= names
        self.supposed &= supposed

    def declare(self, extents: Mapping[str, Extent]) -> None:
        """Give dimensions that are created from now on the ``extents``, by name."""
        self._declared_sizes = extents

    @property
    def names(self) -> frozenset[str]:
        """Returns the names of all dimensions that were created."""
        return frozenset(self._names)

    @property
    def are_legal(self) -> bool:
        """Returns whether data-dependent dimensions are allowed."""
        return self._declared_sizes is not None

    def may(self, permission: Permission) -> bool:
        """Returns whether ``permission``, which makes such dimensions, is granted; records that there is a use for
        it.
        """
        return self.permissions.may(permission) and self.are_legal

    def new(self, name: str, low: int = 0, high: int = LARGEST_EXTENT) -> Extent:
        """Returns a new dimension called ``name``, with a suffix if that is taken; it starts at 0, as the data may be
        empty."""
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
