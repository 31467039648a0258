"""Steps: pieces of work that command buffers take, the places they are given, and what notes them in a recording."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from landbridge.devices.vulkan.driver_objects import DriverObjects
from landbridge.devices.vulkan.memory_uses import UsedMemory
from landbridge.records import record


@record(frozen=True, slots=True)
class MemoryLocation:
    """The bytes of ``memory`` from ``offset`` on."""

    memory: UsedMemory
    offset: int


class CommandStep(Protocol):
    """One piece of work: what it uses, and how a command buffer says it."""

    @property
    def places(self) -> tuple[MemoryLocation, ...]:
        """What it is given, in its own order."""

    def moved(self, places: Sequence[MemoryLocation]) -> CommandStep:
        """The same work on other ``places``, as many as it has."""

    @property
    def uses(self) -> Sequence[tuple[UsedMemory, bool]]:
        """The memory it touches, and whether it writes there."""

    def encode(self, device: DriverObjects, commands: int) -> Callable[[], None] | None:
        """Append it to ``commands``; what to call once the commands will not run again."""


class VulkanRecorder:
    """Takes the steps given to a stream. ``places`` are numbered in the order of their first use."""

    def __init__(self) -> None:
        self.steps: list[CommandStep] = []
        self.places: dict[MemoryLocation, int] = {}

    def add(self, step: CommandStep) -> None:
        """Note ``step``, which was checked."""
        self.steps.append(step)
        for location in step.places:
            self.places.setdefault(location, len(self.places))
