"""Used: memory of a device, and the batches that use it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from landbridge.devices.vulkan.timeline import Point, Timeline

if TYPE_CHECKING:
    from landbridge.devices.vulkan.logical_device import LogicalDevice

#: Streams whose uses are remembered before those that are done are forgotten.
_MANY_STREAMS = 4


class Used:
    """``nbytes`` bytes of ``device``. ``objects`` are the driver's objects by kind, which end together.

    ``freed`` once it was given back: the objects live on until the last batch that uses them is done.
    """

    __slots__ = ("_reads", "_writes", "device", "freed", "nbytes", "objects")

    def __init__(self, device: LogicalDevice, nbytes: int, objects: tuple[tuple[str, int], ...]) -> None:
        self.device = device
        self.nbytes = nbytes
        self.objects = objects
        self.freed = False
        self._reads: dict[Timeline, int] = {}
        self._writes: dict[Timeline, int] = {}

    def note_use(self, point: Point, *, writes: bool) -> None:
        """Remember that the batch at ``point`` uses the bytes."""
        uses = self._writes if writes else self._reads
        if len(uses) > _MANY_STREAMS:
            for stream, count in tuple(uses.items()):
                if stream.reached(count):
                    del uses[stream]
        uses[point.stream] = point.count

    def wait(self, *, writes: bool) -> None:
        """Wait for the batches that an access of the host must come after."""
        for uses in (self._writes, self._reads) if writes else (self._writes,):
            for stream, count in tuple(uses.items()):
                stream.wait(count)

    def is_idle(self) -> bool:
        """Whether no batch uses it any more."""
        uses = [*self._writes.items(), *self._reads.items()]
        return all(stream.reached(count) for stream, count in uses)


@dataclass(frozen=True, slots=True)
class Place:
    """The bytes of ``memory`` from ``offset`` on."""

    memory: Used
    offset: int
