"""Permissions: what walks of a model may do that costs something, and what they have found a use for."""

from __future__ import annotations

from dataclasses import field
from enum import Enum

from landbridge.records import record


class Permission(Enum):
    """Something that a walk does only if the model cannot be compiled otherwise; its value is what happens then."""

    READ = "values that a run computes become dimensions"
    #: Carried values may be known in unrolled loops, which shapes may require.
    UNROLL = "loops are unrolled"
    RELATE = "runs test that the extents of inputs fit"
    UNIFY = "dimensions along one axis become one"
    FIX = "a dimension has one size"
    #: Nodes without a kernel, because an input decides what they do.
    HOST = "nodes run on the host"
    #: An If that tests whether data are empty is compiled for data that are not.
    NOT_EMPTY = "no branch is for empty data alone"
    SEPARATE = "loops and branches become programs of their own"
    #: Ranges of dimensions are narrowed until the comparisons are decided.
    DECIDE = "no kernel compares sizes that differ between iterations"
    REFUSE = "a branch that is impossible for these shapes ends the run"


@record
class Permissions:
    """The permissions that are ``granted``, and those that a walk has found a use for, ``useful``."""

    granted: set[Permission] = field(default_factory=set)
    useful: set[Permission] = field(default_factory=set)

    def may(self, permission: Permission) -> bool:
        """Returns whether ``permission`` is granted; records that there is a use for it."""
        self.useful.add(permission)
        return permission in self.granted
