"""UsedMemory: memory of a device, with the batches that use it."""

from __future__ import annotations

from typing import Protocol

from landbridge.device.api import Space
from landbridge.devices.vulkan.driver_objects import DriverObjects
from landbridge.errors import UseAfterFreeError

#: How many streams are remembered before uses that are done are forgotten.
_MANY_STREAMS = 4


class Batches(Protocol):
    """The batches of a stream, by their count."""

    def reached(self, count: int) -> bool:
        """Returns whether ``count`` batches are done."""

    def wait(self, count: int) -> bool:
        """Wait until ``count`` batches are done; returns whether they are."""


class UsedMemory:
    """``nbytes`` bytes of ``device``, made of the driver's ``objects`` by kind, which are destroyed together.

    ``freed`` is set once it was given back: the objects live on until the last batch that uses them is done.
    """

    __slots__ = ("_objects", "_reads", "_writes", "device", "freed", "nbytes")

    def __init__(self, device: DriverObjects, nbytes: int, objects: tuple[tuple[str, int], ...]) -> None:
        self.device = device
        self.nbytes = nbytes
        self.freed = False
        self._objects = objects
        self._reads: dict[Batches, int] = {}
        self._writes: dict[Batches, int] = {}

    def note_use(self, stream: Batches, count: int, *, writes: bool) -> None:
        """Record that batch ``count`` of ``stream`` uses the bytes."""
        uses = self._writes if writes else self._reads
        if len(uses) > _MANY_STREAMS:
            for other, done in tuple(uses.items()):
                if other.reached(done):
                    del uses[other]
        uses[stream] = count

    def wait(self, *, writes: bool) -> None:
        """Wait for the batches that an access of the host must follow."""
        for uses in (self._writes, self._reads) if writes else (self._writes,):
            for stream, count in tuple(uses.items()):
                stream.wait(count)

    def free(self) -> None:
        """Free the memory; does nothing once the device is closed."""
        if self.device.is_open:
            self.freed = True
            self.device.when(self._is_idle, self._destroy)
            self.device.collect()

    def _is_idle(self) -> bool:
        uses = [*self._writes.items(), *self._reads.items()]
        return all(stream.reached(count) for stream, count in uses)

    def _destroy(self) -> None:
        for kind, handle in self._objects:
            self.device.destroy(kind, handle)


def memory_of(space: Space) -> UsedMemory:
    """Returns the handle of ``space``; raises DeviceLostError or UseAfterFreeError once it is gone."""
    memory: UsedMemory = space.handle
    memory.device.check_open()
    if memory.freed:
        raise UseAfterFreeError(f"a space of {space.device} is used after it was freed; allocate another one")
    return memory
