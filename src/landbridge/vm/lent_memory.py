"""Lent memory: what code of the host uses of a device's memory in place, with barriers around it.

Code of the host and kernels of the device take turns: a step that touches the same granules as one in flight waits for
it, and a device is given its next step when the host's is over.
"""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.memory_kind import MemoryKind
from landbridge.tensor import Tensor
from landbridge.vm.own_memory import FlatMemory
from landbridge.vm.program import AccessStep, LentBytes, Step
from landbridge.vm.registers import RegisterPlace


class LentMemory:
    """What the steps of the host since the last ``take`` use of memory of devices."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[Tensor | int, list[tuple[int, int, bool]]]] = {}

    def add(self, kind: MemoryKind, place: RegisterPlace, *, writes: bool) -> None:
        """They use ``place``, memory of ``kind``, and may write it."""
        if not place.nbytes:
            return
        own = place.own
        memory = own.tensor if isinstance(own, FlatMemory) else place.io
        assert memory is not None
        _, ranges = self._found.setdefault(id(own) if own is not None else -1 - (place.io or 0), (memory, []))
        ranges.append((*granules(place, kind.coherence_granule), writes))

    def take(self) -> tuple[LentBytes, ...]:
        """The bytes, each once, which are forgotten then."""
        found, self._found = self._found, {}
        lent: list[LentBytes] = []
        for memory, ranges in found.values():
            joined: list[tuple[int, int, bool]] = []
            for start, stop, writes in sorted(ranges):
                if joined and start < joined[-1][1]:
                    first, last, before = joined[-1]
                    joined[-1] = (first, max(last, stop), before or writes)
                else:
                    joined.append((start, stop, writes))
            lent += [LentBytes(memory, start, stop, "rw" if writes else "r") for start, stop, writes in joined]
        return tuple(lent)


def granules(place: RegisterPlace, granule: int) -> tuple[int, int]:
    """The bytes of ``place`` in its memory, rounded outwards to whole granules."""
    return place.offset // granule * granule, -(-(place.offset + place.nbytes) // granule) * granule


def with_barriers(lent: tuple[LentBytes, ...], steps: Sequence[Step]) -> list[Step]:
    """``steps`` of the host, which use ``lent``."""
    return [AccessStep(lent, tuple(steps))] if lent and steps else list(steps)
