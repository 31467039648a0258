"""Tries several ways to compile a model that cannot be compiled directly.

Each attempt costs an import, and only models that would be refused otherwise need more than one. If none succeeds, the
first error is raised: it has the cause. What was tried after it, and why that failed, is listed below it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from landbridge.errors import CompileError, NodeError, ShapeError, UndecidedSizeError, UnsupportedOperatorError
from landbridge.frontend.onnx.graph_walk import Branches
from landbridge.ir.module import IRModule
from landbridge.ir.permissions import Permission, Permissions
from landbridge.records import record

#: The permissions that are tried one after another, the lowest level first: each with all attempts of lower levels.
_LEVELS = (
    (Permission.READ,),
    (Permission.UNROLL,),
    (Permission.RELATE, Permission.UNIFY, Permission.FIX),
    (Permission.HOST,),
    (Permission.NOT_EMPTY,),
    (Permission.SEPARATE,),
    (Permission.DECIDE,),
)
#: The first level before which no dimension may have one size.
_WIDE = 3


@record
class Attempts:
    """The attempts to compile one model by ``build``, which has ``permissions``.

    ``is_open``: extents may be open. ``branches``: what the walks have found. ``failed``: the permissions that did not
    help, with the error of each.
    """

    build: Callable[[], IRModule]
    is_open: bool
    permissions: Permissions
    branches: Branches
    failed: list[tuple[Permission, CompileError]] = field(default_factory=list)

    def all(self) -> IRModule:
        """Returns the program of the first attempt that succeeds; raises the first CompileError if none does.

        The model is compiled as it is. If that fails, it gets the permissions that might help.
        """
        return self._tried(len(_LEVELS))

    def with_reads(self) -> IRModule:
        """Returns the program of the first attempt that succeeds, of two: in the second, values that a run computes
        become dimensions.
        """
        self.permissions.granted.discard(Permission.READ)
        return self._tried(1)

    def _tried(self, levels: int) -> IRModule:
        """Returns the program of the first attempt that succeeds with the permissions of the lowest ``levels``."""
        if not levels:
            return self.build()
        try:
            return self._tried(levels - 1)
        except CompileError as error:
            first = error
        granted = self.permissions.granted
        tried = 0
        for permission in _LEVELS[levels - 1]:
            if not self._helps(permission, first):
                continue
            if levels > _WIDE:
                granted.discard(Permission.FIX)
                self.permissions.useful.discard(Permission.FIX)
            granted.add(permission)
            tried += 1
            try:
                return self._tried(levels - 1)
            except CompileError as error:
                self.failed.append((permission, error))
                granted.discard(permission)
                if permission is Permission.SEPARATE and self.branches.part_refused:
                    raise  # the reason why a loop or a branch is no program is what can be changed
        if tried:
            raise first from first.__cause__
        raise first

    def _helps(self, permission: Permission, error: CompileError) -> bool:
        """Returns whether ``permission`` might help against ``error``."""
        useful = permission in self.permissions.useful
        if permission in self.permissions.granted:
            return False
        if permission is Permission.READ:
            wanted = isinstance(error, UnsupportedOperatorError) and isinstance(error.needed, dict)
            return useful and self.is_open and wanted and not _chooses(error)
        is_of_nodes = isinstance(error, UnsupportedOperatorError | ShapeError | NodeError)
        if permission is Permission.UNROLL:
            return useful and is_of_nodes and not isinstance(error, UndecidedSizeError)
        if permission in (Permission.RELATE, Permission.UNIFY, Permission.FIX):
            is_supported = not isinstance(error, UnsupportedOperatorError) or Permission.FIX in self.permissions.useful
            return self.is_open and is_of_nodes and is_supported and (useful or permission is Permission.RELATE)
        return useful and (permission is Permission.NOT_EMPTY or not _chooses(error))


def _chooses(error: CompileError) -> bool:
    """Returns whether ``error`` requires the value of an input that decides what the program does."""
    wanted = error.needed if isinstance(error, UnsupportedOperatorError) else None
    return isinstance(wanted, dict) and any(each.chosen for each in wanted.values())
