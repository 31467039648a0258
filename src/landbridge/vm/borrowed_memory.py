"""BorrowedMemory: memory of devices that code of the host uses in place, with barriers around its steps.

Code of the host and kernels of the device run alternately: a step that touches the same granules as one in flight waits
for it, and a device gets its next step when the host's is over.
"""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.memory_kind import MemoryKind
from landbridge.tensor import Tensor
from landbridge.vm.owned_memory import FlatMemory, RowMemory
from landbridge.vm.program import AccessStep, BorrowedBytes, Step
from landbridge.vm.registers import RegisterLocation


class BorrowedMemory:
    """The bytes of device memory that steps of the host have used since the last ``take``."""

    def __init__(self) -> None:
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

    def take(self) -> tuple[BorrowedBytes, ...]:
        """Returns the recorded bytes, each once, and clears the record."""
        found, self._found = self._found, {}
        borrowed: list[BorrowedBytes] = []
        for memory, ranges in found.values():
            joined: list[tuple[int, int, bool]] = []
            for start, stop, writes in sorted(ranges):
                if joined and start < joined[-1][1]:
                    first, last, before = joined[-1]
                    joined[-1] = (first, max(last, stop), before or writes)
                else:
                    joined.append((start, stop, writes))
            borrowed += [BorrowedBytes(memory, start, stop, "rw" if writes else "r") for start, stop, writes in joined]
        return tuple(borrowed)


def granules(location: RegisterLocation, granule: int) -> tuple[int, int]:
    """Returns the bytes of ``location`` in its memory, rounded outwards to whole granules."""
    return location.offset // granule * granule, -(-(location.offset + location.nbytes) // granule) * granule


def with_barriers(borrowed: tuple[BorrowedBytes, ...], steps: Sequence[Step]) -> list[Step]:
    """Returns ``steps`` of the host, which use ``borrowed``, with barriers around them."""
    return [AccessStep(borrowed, tuple(steps))] if borrowed and steps else list(steps)
