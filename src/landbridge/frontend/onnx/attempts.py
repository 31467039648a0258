"""Tries several ways to compile a model that cannot be compiled directly.

Each attempt costs an import, and only models that would be refused otherwise need more than one. If none succeeds, the
first error is raised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from landbridge.errors import CompileError, NodeError, ShapeError, UndecidedSizeError, UnsupportedOperatorError
from landbridge.frontend.onnx.graph_walk import Branches
from landbridge.frontend.onnx.open_ranges import UnifiedDimensions
from landbridge.ir.data_dimensions import DataDimensions
from landbridge.ir.module import IRModule
from landbridge.records import record


@record
class Attempts:
    """The state of the attempts to compile one model: what ``build`` may do now, and what else it might use.

    ``is_open``: extents may be open. ``reads``: computed values may become dimensions. ``hosts``: nodes without a
    kernel, because an input decides what they do, may run on the host. ``fixing``: collects the dimensions that would
    need one fixed size for others to fit; None if ``build`` may fix them. ``unified``: the dimensions that may become
    one. ``branches``: what loops and branches may do. ``might_read`` and ``might_host``: ``build`` has found a use for
    that permission.
    """

    build: Callable[[], IRModule]
    is_open: bool
    hosts: bool
    branches: Branches
    reads: bool = False
    fixing: list[str] | None = field(default_factory=list)
    unified: UnifiedDimensions = field(default_factory=UnifiedDimensions)
    might_read: bool = False
    might_host: bool = False

    def note(self, data: DataDimensions) -> None:
        """Record the permissions that ``build`` has found a use for."""
        self.might_read |= data.might_read
        self.might_host |= data.might_host

    def all(self) -> IRModule:
        """Returns the program of the first attempt that succeeds; raises CompileError if none does.

        The model is compiled as one program, or cut into segments. If that fails, its loops and branches become
        separate programs. Last, kernels may no longer compare sizes that differ between iterations: ranges of
        dimensions are narrowed until the comparisons are decided.
        """
        try:
            return self._with_separate_programs()
        except CompileError as error:
            if not self.branches.differed or _chooses(error):
                raise
            first = error
        self.branches.differing, self.fixing = False, []
        try:
            return self._with_separate_programs()
        except CompileError:
            raise first from None

    def _with_separate_programs(self) -> IRModule:
        try:
            return self._counting()
        except CompileError as error:
            if not self.branches.might_part or _chooses(error):
                raise
            first = error
        self.branches.separate, self.fixing = True, []
        try:
            return self._counting()
        except CompileError as error:
            self.branches.separate = False
            raise (error if self.branches.part_refused else first) from None

    def _counting(self) -> IRModule:
        """Returns the program of the first of two attempts that succeeds, for an ``If`` that tests whether data are
        empty.

        The first compiles both of its branches, the second is for sizes of at least 1 only.
        """
        try:
            return self._with_hosts()
        except CompileError:
            if not self.branches.counts:
                raise
        self.branches.counted, self.fixing = False, []
        return self._with_hosts()

    def _with_hosts(self) -> IRModule:
        """Returns the program of the first of two attempts that succeeds; in the second, nodes may run on the host."""
        try:
            return self._with_relations()
        except CompileError as error:
            if self.hosts or not self.might_host or _chooses(error):
                raise
            first = error
        self.hosts, self.fixing = True, []
        try:
            return self._with_relations()
        except CompileError:
            self.hosts = False
            raise first from None

    def _with_relations(self) -> IRModule:
        """Returns the program of the first attempt that succeeds, for inputs whose extents have to fit each other.

        After a plain attempt, runs test that extents fit; then dimensions along the same axis become one; then a
        dimension gets a fixed size.
        """
        try:
            return self._with_loops()
        except (UnsupportedOperatorError, ShapeError, NodeError) as error:
            if not self.is_open or (isinstance(error, UnsupportedOperatorError) and not self.fixing):
                raise
            first: CompileError = error
        self.branches.related = True
        try:
            return self._with_loops()
        except CompileError:
            self.branches.related = False
        if self.unified.might:
            self.unified.allowed = True
            try:
                return self._with_loops()
            except CompileError:
                self.unified.allowed = False
        if not self.fixing:
            raise first from None
        self.fixing = None
        return self._with_loops()

    def _with_loops(self) -> IRModule:
        """Returns the program of the first of two attempts that succeeds: with rolled loops, then with unfolded ones.

        In unfolded loops, carried values may be known, which shapes may require.
        """
        try:
            return self.with_reads()
        except UndecidedSizeError:
            raise
        except (UnsupportedOperatorError, ShapeError, NodeError) as error:
            if not self.branches.rolled:
                raise
            first: CompileError = error
        self.branches.unfolded = True
        try:
            return self.with_reads()
        except CompileError:
            self.branches.unfolded = False
            raise first from None

    def with_reads(self) -> IRModule:
        """Returns the program of the first of two attempts that succeeds.

        In the first, all sizes must be known before a run; in the second, values that a run computes become dimensions.
        The second is made only if sizes may be open and the first failed because it needs the values of inputs that are
        sizes. If both fail, raises the error of the first.
        """
        self.reads = False
        try:
            return self.build()
        except UnsupportedOperatorError as error:
            wants_sizes = isinstance(error.needed, dict) and not _chooses(error)
            if not self.might_read or not self.is_open or not wants_sizes:
                raise
            first, self.reads = error, True
        try:
            return self.build()
        except CompileError:
            raise first from None


def _chooses(error: CompileError) -> bool:
    """Returns whether ``error`` requires the value of an input that decides what the program does."""
    wanted = error.needed if isinstance(error, UnsupportedOperatorError) else None
    return isinstance(wanted, dict) and any(each.chosen for each in wanted.values())
