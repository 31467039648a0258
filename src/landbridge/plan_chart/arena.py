"""One planned arena as data: blocks at byte offsets over steps of time."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from itertools import accumulate

from landbridge.process.locks import cached_property
from landbridge.records import record


class Kind(str, Enum):
    """The kind of work that a step does, as far as it matters for reading a plan."""

    __str__ = str.__str__

    CONTRACTION = "convolution, matrix product"
    REDUCTION = "pooling, reduction"
    ELEMENTWISE = "elementwise"
    MOVE = "only moves data"
    HOST = "host builtin"
    UNKNOWN = "unknown"


@record(frozen=True, slots=True)
class Step:
    """One step of the program, at ``time`` in the units that its source counts in."""

    name: str
    time: int
    kind: Kind = Kind.UNKNOWN


@record(frozen=True, slots=True)
class Use:
    """A step that touches ``nbytes`` of a block, from byte ``offset`` of the block on."""

    step: int
    offset: int
    nbytes: int
    writes: bool


@record(frozen=True, slots=True)
class ArenaBlock:
    """``nbytes`` at byte ``offset`` of the arena, in use during the half-open steps ``start <= step < end``.

    ``kind`` is that of the step which first writes it; ``subject`` says dtype and shape where there are any.
    """

    id: str
    offset: int
    nbytes: int
    alignment: int
    start: int
    end: int
    kind: Kind = Kind.UNKNOWN
    subject: str = ""
    uses: tuple[Use, ...] = ()

    def rewritten_at(self) -> list[int]:
        """Returns the steps that write bytes of the block which an earlier step wrote: updates in place."""
        written: list[Use] = []
        found = []
        for use in self.uses:
            if use.writes:
                if any(
                    w.step < use.step and w.offset < use.offset + use.nbytes and use.offset < w.offset + w.nbytes
                    for w in written
                ):
                    found.append(use.step)
                written.append(use)
        return found


@record(frozen=True)
class Arena:
    """The plan of one (device, scope); all sizes in bytes.

    No plan of these blocks is smaller than ``lower_bound``; ``capacity`` is that of the scope, None when it is not
    declared. The last step ends at ``end_time``. ``blocks`` refer to ``steps`` by index; their offsets and sizes are
    multiples of ``granule``, the bytes of a row where the scope has rows.
    """

    device: str
    scope: str
    peak: int
    lower_bound: int
    proved_optimal: bool
    capacity: int | None
    steps: tuple[Step, ...]
    end_time: int
    blocks: tuple[ArenaBlock, ...]
    granule: int = 1

    @cached_property
    def live_bytes(self) -> tuple[int, ...]:
        """Returns the sum of the blocks alive, by step."""
        change = [0] * (len(self.steps) + 1)
        for block in self.blocks:
            change[block.start] += block.nbytes
            change[block.end] -= block.nbytes
        return tuple(accumulate(change[:-1]))

    @property
    def peak_step(self) -> int:
        """Returns the first step at which most bytes are alive; 0 when there are no steps."""
        return max(range(len(self.steps)), key=self.live_bytes.__getitem__, default=0)

    def with_capacity(self, capacity: int | None) -> Arena:
        """Returns this arena in a scope of ``capacity`` bytes."""
        return replace(self, capacity=capacity)

    def holders(self, step: int) -> list[ArenaBlock]:
        """Returns the blocks alive at ``step``, largest first."""
        alive = [block for block in self.blocks if block.start <= step < block.end]
        return sorted(alive, key=lambda block: -block.nbytes)
