"""BorrowedMemory: memory of devices that code of the host uses in place, with barriers around its steps.

Code of the host and kernels of the device run alternately: a step that touches the same granules as one in flight waits
for it, and a device gets its next step when the host's is over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, cast

from landbridge.memory_kind import MemoryKind
from landbridge.tensor import Tensor
from landbridge.vm.dependences import Touch
from landbridge.vm.kernel_step import KernelStep
from landbridge.vm.owned_memory import FlatMemory, RowMemory
from landbridge.vm.program import AccessStep, BorrowedBytes, CopyStep, MoveStep, Step
from landbridge.vm.registers import RegisterLocation


class Borrowed(NamedTuple):
    """Memory of devices that steps of the host use: the ``bytes`` for barriers, and the same bytes as ``touched``."""

    bytes: tuple[BorrowedBytes, ...]
    touched: Sequence[Touch]


class BorrowedMemory:
    """The bytes of device memory that steps of the host have used since the last ``take``.

    ``aliases``: the input whose memory an output may be, by the output's register, as ``Touches`` has it.
    """

    def __init__(self, aliases: Mapping[int, int] | None = None) -> None:
        self._aliases = aliases or {}
        self._found: dict[FlatMemory | RowMemory | int | None, tuple[Tensor | int, list[tuple[int, int, bool]]]] = {}

    def add(self, kind: MemoryKind, location: RegisterLocation, *, writes: bool) -> None:
        """Record that host steps use ``location``, memory of ``kind``, and with ``writes`` may write it."""
        if not location.nbytes:
            return
        owned = location.owned
        memory = owned.tensor if isinstance(owned, FlatMemory) else location.io
        assert memory is not None
        _, ranges = self._found.setdefault(owned if owned is not None else location.io, (memory, []))
        ranges.append((*granules(location, kind.coherence_granule), writes))

    def take(self) -> Borrowed:
        """Returns the recorded bytes, each once, and clears the record."""
        found, self._found = self._found, {}
        borrowed: list[BorrowedBytes] = []
        touched: list[Touch] = []
        for key, (memory, ranges) in found.items():
            joined: list[tuple[int, int, bool]] = []
            for start, stop, writes in sorted(ranges):
                if joined and start < joined[-1][1]:
                    first, last, before = joined[-1]
                    joined[-1] = (first, max(last, stop), before or writes)
                else:
                    joined.append((start, stop, writes))
            borrowed += [BorrowedBytes(memory, start, stop, "rw" if writes else "r") for start, stop, writes in joined]
            where = self._aliases.get(key, key) if isinstance(key, int) else key
            touched += [Touch(where, start, stop, writes) for start, stop, writes in joined]
        return Borrowed(tuple(borrowed), touched)


def granules(location: RegisterLocation, granule: int) -> tuple[int, int]:
    """Returns the bytes of ``location`` in its memory, rounded outwards to whole granules."""
    return location.offset // granule * granule, -(-(location.offset + location.nbytes) // granule) * granule


def enclose(
    steps: list[Step],
    first: int,
    borrowed: Borrowed,
    conflicts: Callable[[int, Sequence[Touch]], bool],
) -> None:
    """Put the steps from ``first`` on, which use ``borrowed``, between its barriers.

    Launches right before them come behind the first barrier too, unless a step of that number ``conflicts`` with what
    is borrowed: its device need not wait for the barrier, and the barrier need not wait for it.
    """
    if not borrowed.bytes or first == len(steps):
        return
    while first and _may_follow(steps[first - 1], borrowed, conflicts):
        first -= 1
    steps[first:] = [AccessStep(borrowed.bytes, tuple(steps[first:]))]


def _may_follow(step: Step, borrowed: Borrowed, conflicts: Callable[[int, Sequence[Touch]], bool]) -> bool:
    match step:
        case MoveStep():
            return True
        case KernelStep() | CopyStep(number=int()):
            return not conflicts(cast(int, step.number), borrowed.touched)
        case _:
            return False
