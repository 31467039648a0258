"""Steps: the commands of command buffers with the locations that they use, and the recorder of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from landbridge.devices.vulkan.driver_objects import DriverObjects
from landbridge.devices.vulkan.memory_uses import UsedMemory
from landbridge.records import record


@record(frozen=True, slots=True)
class MemoryLocation:
    """A location: the bytes of ``memory`` from ``offset`` on."""

    memory: UsedMemory
    offset: int


class CommandStep(Protocol):
    """One command, which reports what it uses and appends itself to a command buffer."""

    @property
    def places(self) -> tuple[MemoryLocation, ...]:
        """Returns the locations that it uses, in its own order."""

    def moved(self, places: Sequence[MemoryLocation]) -> CommandStep:
        """Returns the same command on other ``places``, as many as it has."""

    @property
    def uses(self) -> Sequence[tuple[UsedMemory, bool]]:
        """Returns the memory it uses, each with whether it writes there."""

    def encode(self, device: DriverObjects, commands: int) -> Callable[[], None] | None:
        """Append it to ``commands``; returns what to call once the commands will not run again."""


class VulkanRecorder:
    """A recorder of the steps of a stream. ``places`` are numbered in the order of their first use."""

    def __init__(self) -> None:
        self.steps: list[CommandStep] = []
        self.places: dict[MemoryLocation, int] = {}

    def add(self, step: CommandStep) -> None:
        """Record ``step``, which was checked."""
        self.steps.append(step)
        for location in step.places:
            self.places.setdefault(location, len(self.places))
