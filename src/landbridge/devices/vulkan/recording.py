"""Recordings: work that is recorded once, then queued again as one command buffer, on the same memory or on other.

A command buffer names the memory it was recorded with, and not every driver lets descriptors change under it. So there
is one for each binding seen: memory that is used in rotation, as the frames of a camera, is recorded in the first
round, and queueing it again records nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from landbridge.devices.vulkan import flags
from landbridge.devices.vulkan.logical_device import LogicalDevice
from landbridge.devices.vulkan.memory_uses import UsedMemory
from landbridge.devices.vulkan.steps import CommandStep, MemoryLocation, VulkanRecorder
from landbridge.devices.vulkan.timeline import Point, Timeline
from landbridge.errors import InputError, UseAfterFreeError
from landbridge.process.locks import new_lock
from landbridge.records import record

#: The number of bindings retained; the one used longest ago is released first.
_MOST_BINDINGS = 16


@record
class _Recorded:
    """The commands for one binding; ``last`` is the point where they were last queued."""

    commands: int
    releases: list[Callable[[], None]]
    uses: list[tuple[UsedMemory, bool]]
    last: Point | None = None


class VulkanRecording:
    """Steps that can be queued again. ``places`` are what each position is bound to; one thread at a time binds."""

    def __init__(self, device: LogicalDevice, recorder: VulkanRecorder) -> None:
        self.device = device
        self.places = self._first_places = tuple(recorder.places)
        self._steps = tuple(recorder.steps)
        self._positions = [[recorder.places[location] for location in step.places] for step in self._steps]
        self._recorded: OrderedDict[tuple[MemoryLocation, ...], _Recorded] = OrderedDict()
        #: The one for ``places``, once it was queued.
        self._bound: _Recorded | None = None
        self._lock = new_lock()

    def replay(self, stream: Timeline, args: Mapping[int, MemoryLocation]) -> Point:
        """Queue all steps on ``stream``, after binding ``args`` to their positions for good."""
        for position in args:
            if not 0 <= position < len(self.places):
                raise InputError(f"a recording of {len(self.places)} regions has no position {position}")
        with self._lock:
            places, found = self.places, self._bound
            if args:
                places = tuple(args.get(number, location) for number, location in enumerate(places))
            for location in places:
                if location.memory.freed:
                    raise UseAfterFreeError("a recording uses memory that was freed; replay it with other memory")
            if args or found is None:
                found = self._recorded.get(places) or self._record(places)
                self._recorded.move_to_end(places)
                self.places, self._bound = places, found
            self.device.collect()
            found.last = self.device.enqueue(stream, found.commands, found.uses)
            return found.last

    def _record(self, places: tuple[MemoryLocation, ...]) -> _Recorded:
        steps: Sequence[CommandStep] = self._steps  # which were checked where they were recorded
        if places != self._first_places:
            steps = [
                step.moved([places[number] for number in positions])
                for step, positions in zip(self._steps, self._positions, strict=True)
            ]
        commands = self.device.begin_commands(flags.COMMAND_SIMULTANEOUS)
        releases = self.device.encode(commands, steps)
        self.device.end_commands(commands)
        created = _Recorded(commands, releases, [use for step in steps for use in step.uses])
        self._recorded[places] = created
        if len(self._recorded) > _MOST_BINDINGS:
            _, oldest = self._recorded.popitem(last=False)
            self.device.release_after(oldest.last, oldest.commands, oldest.releases)
        return created

    def __del__(self) -> None:
        for created in getattr(self, "_recorded", {}).values():
            self.device.defer(partial(self.device.release_after, created.last, created.commands, created.releases))
