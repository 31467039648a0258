"""The planner's input and output: buffers with lifetimes in bytes, rows or objects, and their plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from math import prod

from landbridge.errors import PlanError
from landbridge.records import record

BufferId = str | int


@record(frozen=True, slots=True)
class Alias:
    """Says where a buffer's bytes lie in another's: from byte ``offset`` of the buffer ``of`` on, never past its end.

    A required alias is a view: it lies there, and both may be in use at the same time; the root of the views must have
    it at a multiple of its alignment. An ``optional`` one may lie there: an elementwise result in place of an operand,
    a part of a concatenation in its part of the whole. Anywhere else the two exclude each other as any two buffers do.
    An optional Alias includes the buffer's views that start no earlier, and views of ``of`` (and what it is a view of)
    that end no later.
    """

    of: BufferId
    offset: int = 0
    optional: bool = False


@record(frozen=True, slots=True)
class Buffer:
    """A request for ``size`` bytes at a multiple of ``alignment``, in use during the half-open steps
    ``start <= t < end``.

    ``offset`` pins the buffer to that byte offset. ``size`` may be 0: such a buffer conflicts with nothing. ``alias``
    lets it share bytes with another buffer. Raises PlanError for values without a meaning.
    """

    id: BufferId
    size: int
    alignment: int
    start: int
    end: int
    offset: int | None = None
    alias: Alias | None = None

    def __post_init__(self) -> None:
        if self.size < 0:
            raise PlanError(f"buffer {self.id!r} has size {self.size}; legal: 0 or more bytes")
        if self.alignment < 1 or self.alignment & (self.alignment - 1):
            raise PlanError(f"buffer {self.id!r} has alignment {self.alignment}; legal: a power of two")
        if self.end <= self.start:
            raise PlanError(
                f"buffer {self.id!r} lives from {self.start} to {self.end} (exclusive), so never; "
                "legal: start < end, or leave it out"
            )
        if self.offset is not None and (self.offset < 0 or self.offset % self.alignment):
            raise PlanError(
                f"buffer {self.id!r} is pinned to offset {self.offset}; "
                f"legal: a multiple of its alignment {self.alignment}, 0 or more"
            )


@record(frozen=True, slots=True)
class Plan:
    """Byte offsets by buffer id, for the buffers of one (device, scope).

    ``peak`` is the bytes that the whole plan needs, ``lower_bound`` a number that no plan can go below, ``seconds`` the
    planning time. ``proved_optimal`` says that no plan has a smaller peak.
    """

    offsets: Mapping[BufferId, int]
    peak: int
    lower_bound: int
    proved_optimal: bool
    seconds: float


@record(frozen=True, slots=True)
class RowBuffer:
    """A request for ``rows`` whole rows, in the half-open steps ``start <= t < end``; it uses ``row_bytes`` of each."""

    id: BufferId
    rows: int
    row_bytes: int
    start: int
    end: int


@record(frozen=True, slots=True)
class RowPlan:
    """The rows of each buffer, in its order; all need ``peak`` rows, and no plan needs fewer than ``lower_bound``."""

    rows: Mapping[BufferId, Sequence[int]]
    peak: int
    lower_bound: int


@record(frozen=True, slots=True)
class ObjectRequest:
    """A request for an object of at least ``shape`` elements of ``dtype``, in the half-open steps ``start <= t < end``.

    An element has ``itemsize`` bytes.
    """

    id: BufferId
    shape: tuple[int, ...]
    dtype: str
    itemsize: int
    start: int
    end: int

    def __post_init__(self) -> None:
        if self.end <= self.start:
            raise PlanError(f"object {self.id!r} lives from {self.start} to {self.end} (exclusive), so never")

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.itemsize


@record(frozen=True, slots=True)
class ObjectPlan:
    """The ``objects`` to allocate as (shape, dtype), and which of them (an index) each request uses.

    All take ``nbytes``; ``lower_bound`` is the largest sum of the requests' own bytes at one step.
    """

    objects: Sequence[tuple[tuple[int, ...], str]]
    uses: Mapping[BufferId, int]
    nbytes: int
    lower_bound: int


DeviceScope = tuple[str, str]
"""(device, scope). Two of them never share bytes."""


@record(frozen=True, slots=True)
class ScopeLimits:
    """The limits of a scope: ``capacity`` bytes (None: unlimited), offsets at multiples of ``alignment``, and a spill
    scope.

    The spill scope takes what does not fit (None: nothing may leave).
    """

    capacity: int | None = None
    alignment: int = 1
    spill_to: DeviceScope | None = None


@record(frozen=True, slots=True)
class ScopedPlan:
    """One Plan for each scope that buffers ended in, and by id the scope of each spilled buffer."""

    plans: Mapping[DeviceScope, Plan]
    spilled: Mapping[BufferId, DeviceScope] = field(default_factory=dict)
