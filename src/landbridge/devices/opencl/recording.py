"""Recordings: commands that are recorded once, then queued again with other memory.

``replay`` gives positions: the regions that the recorded commands use are numbered in the order of their first use.
From the second replay on, each launch has a kernel object of its own whose arguments are set once, so that a replay
only queues; arguments in a rebound region are set again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import pyopencl as cl

from landbridge.device.api import Region
from landbridge.devices.opencl import copies, modules
from landbridge.devices.opencl.blocks import MEMORY_BLOCKS, BufferBlock
from landbridge.devices.opencl.command_buffer import FEWEST, CommandBuffers
from landbridge.devices.opencl.commands import RecordedCopy, RecordedLaunch
from landbridge.devices.opencl.driver_errors import driver_call
from landbridge.devices.opencl.events import QueueEvent
from landbridge.devices.opencl.instance import Queue
from landbridge.devices.opencl.mapping import end_all
from landbridge.errors import InputError
from landbridge.process.locks import new_lock
from landbridge.records import record


@record
class OpenCLRecorder:
    """A recorder of what is submitted to a stream between ``begin_record`` and ``end_record``."""

    queue: Queue
    positions: dict[Region, int] = field(default_factory=dict)
    commands: list[RecordedLaunch | RecordedCopy] = field(default_factory=list)

    def add_launch(
        self, module: modules.OpenCLModule, name: str, grid: modules.Grid, block: modules.Grid, args: Sequence[Any]
    ) -> None:
        """Record a launch whose arguments were checked."""
        values, _ = modules.bound(self.queue.instance, name, module.function(name), args)
        positions = {i: self._position(arg) for i, arg in enumerate(args) if isinstance(arg, Region)}
        self.commands.append(RecordedLaunch(module, name, grid, block, positions, values))

    def add_copy(self, src: Region, dst: Region, nbytes: int) -> None:
        """Record a copy that was checked."""
        self.commands.append(RecordedCopy(self._position(src), self._position(dst), nbytes))

    def _position(self, region: Region) -> int:
        return self.positions.setdefault(region, len(self.positions))


class OpenCLRecording:
    """Commands that can be queued again. ``regions`` are what each position is bound to now.

    Rebinding and queueing change the state of its kernels: one thread does it at a time, others wait.
    """

    def __init__(self, recorder: OpenCLRecorder) -> None:
        self.instance = recorder.queue.instance
        self.regions = list(recorder.positions)
        self.commands = tuple(recorder.commands)
        self._lock = new_lock()
        self._is_new = True
        self._values: list[Any] = [self._value(region) for region in self.regions]
        self._users: dict[int, list[tuple[RecordedLaunch, int]]] = {}
        for command in self.commands:
            if isinstance(command, RecordedLaunch):
                for argument, position in command.positions.items():
                    self._users.setdefault(position, []).append((command, argument))
        self._note_memory()
        self._buffers = CommandBuffers.of(self.instance) if self._is_worth_a_buffer() else None

    def replay(self, queue: Queue, args: Mapping[int, Region]) -> QueueEvent | None:
        """Queue all commands on ``queue``, after binding the regions in ``args`` to their positions for good."""
        for position, region in args.items():
            if not 0 <= position < len(self.regions):
                raise InputError(f"a recording of {len(self.regions)} regions has no position {position}")
            self._check(region)
        with self._lock:
            if args:
                for position, region in args.items():
                    if region != self.regions[position]:
                        self._rebind(position, region)
                self._note_memory()
            self._prepare()
            is_first, self._is_new = self._is_new, False
            if self._buffers is not None and (event := self._replay_recorded(queue, self._buffers)) is not None:
                return event
            last: cl.Event | None = None
            copied: list[Any] = []
            for command in self.commands:
                if isinstance(command, RecordedLaunch):
                    last = command.enqueue(queue, is_first=is_first)
                else:
                    source, target = self.regions[command.source], self.regions[command.target]
                    copy = copies.enqueue(queue, source, target, command.nbytes)
                    last = copy.event
                    copied.append(copy.keep)
            if last is None:
                return queue.marker()
            return queue.submitted(last, self._blocks, (self._retained, copied) if copied else self._retained)

    def _replay_recorded(self, queue: Queue, buffers: CommandBuffers) -> QueueEvent | None:
        """Queue a command buffer; returns None where the driver has none, for new regions, and while it is queued."""
        key = tuple((region.space.handle, region.byte_offset) for region in self.regions)
        launches = [c for c in self.commands if isinstance(c, RecordedLaunch)]
        event = buffers.enqueue(queue, key, launches, self._values)
        return None if event is None else queue.submitted(event, self._blocks, self._retained)

    def _is_worth_a_buffer(self) -> bool:
        """Returns whether a command buffer may be faster than its launches one by one."""
        return len(self.commands) >= FEWEST and all(isinstance(command, RecordedLaunch) for command in self.commands)

    def _check(self, region: Region) -> None:
        if isinstance(region.space.handle, MEMORY_BLOCKS):
            if region.space.handle.context != self.instance.context:
                raise InputError(f"a recording of opencl:{self.instance.index} was given memory of another context")
            modules.kernel_value(self.instance, region.space.handle, region.byte_offset)

    def _rebind(self, position: int, region: Region) -> None:
        self.regions[position] = region
        self._values[position] = value = self._value(region)
        with driver_call("an argument of a recording"):
            for command, argument in self._users.get(position, ()):
                command.rebind(argument, value)

    def _value(self, region: Region) -> Any:
        block = region.space.handle
        if isinstance(block, MEMORY_BLOCKS):
            return modules.kernel_value(self.instance, block, region.byte_offset)
        return None  # memory of the host, which only copies use

    def _note_memory(self) -> None:
        """Record which memory the present regions are in."""
        handles = [(region.space.handle, region.byte_offset) for region in self.regions]
        #: What replays use and the driver does not keep alive.
        self._retained = tuple(self._values)
        self._used = tuple((block, offset) for block, offset in handles if isinstance(block, MEMORY_BLOCKS))
        self._blocks = tuple(block for block, _ in self._used)
        self._mappable = tuple(block for block in self._blocks if isinstance(block, BufferBlock))

    def _prepare(self) -> None:
        """Check that the memory is alive, and end mappings of it by the host."""
        for block, offset in self._used:
            if not block.alive:
                block.check(offset, 0)
        for block in self._mappable:
            if block.mappings:
                end_all(self.instance, block)
