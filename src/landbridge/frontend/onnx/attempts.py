"""Attempts: ways to compile a model that cannot be compiled as it is, one after another.

Each costs an import, and only models that would be refused pay for it. Where none helps, the first error counts.
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
    """What ``build`` may do now, and what there was reason for. ``is_open``: extents need not be numbers.

    ``reads``: values that are computed may become dimensions. ``hosts``: nodes that no kernel can be made for, as an
    input says what they do, run on the host. ``fixing``: gets the dimensions that would be one number for others to be
    as wide as they are, where that is not to be. ``unified`` has dimensions that may become one. ``branches`` has what
    loops and branches do.
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
        """Keep what ``build`` found reason for."""
        self.might_read |= data.might_read
        self.might_host |= data.might_host

    def all(self) -> IRModule:
        """What is compiled whole, or cut, with its loops and branches; else those are programs apart. Sizes that are
        compared are narrowed last."""
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
        """The first module that there is: with both branches where a count of the data chooses; else for at least 1."""
        try:
            return self._with_hosts()
        except CompileError:
            if not self.branches.counts:
                raise
        self.branches.counted, self.fixing = False, []
        return self._with_hosts()

    def _with_hosts(self) -> IRModule:
        """Nodes on the host come last."""
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
        """Where extents of several inputs have to fit each other, runs test that; else those along one axis become
        one; else one of them is a number."""
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
        """Loops stay loops; else what they carry last may be known, as a shape has to be."""
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
        """All is known before a run; else values that are computed become dimensions."""
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
    """Whether ``error`` wants the value of an input that says what the program does."""
    wanted = error.needed if isinstance(error, UnsupportedOperatorError) else None
    return isinstance(wanted, dict) and any(each.chosen for each in wanted.values())
