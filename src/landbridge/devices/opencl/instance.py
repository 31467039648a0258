"""OpenCLInstance: one open OpenCL device with its context, its queues and its memory kinds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyopencl as cl

from landbridge.device.api import Event
from landbridge.devices.opencl.attributes import target_options
from landbridge.devices.opencl.blocks import BufferBlock, MemoryBlock
from landbridge.devices.opencl.discovery import Found
from landbridge.devices.opencl.driver_errors import driver_call
from landbridge.devices.opencl.events import QueueEvent
from landbridge.memory_kind import MemoryKind
from landbridge.process.locks import new_lock
from landbridge.records import record
from landbridge.targets import Target

_MOST_IN_FLIGHT = 64


class Queue:
    """An in-order queue of the driver, which is a stream of the device API. It keeps alive what its commands use and
    the driver does not retain.

    While it is recording, commands go to ``recorder`` (else None) instead of the driver.
    """

    def __init__(self, instance: OpenCLInstance) -> None:
        self.instance = instance
        with driver_call("a queue"):
            self.cl = (
                cl.CommandQueue(instance.context, instance.device, cl.command_queue_properties.PROFILING_ENABLE)
                if instance.profiling
                else cl.CommandQueue(instance.context, instance.device)
            )
        self.key = self.cl.int_ptr
        self.alive = True
        self.recorder: Any = None
        self._in_flight: list[QueueEvent] = []
        self._lock = new_lock()

    def submitted(self, event: cl.Event, blocks: tuple[MemoryBlock, ...], keep: object) -> QueueEvent:
        """Record a command that was just queued as the last use of ``blocks``; returns its event. ``keep`` is kept
        alive until the command is done.
        """
        for block in blocks:
            block.uses[self.key] = event
        created = QueueEvent(self.cl, event, keep)
        if keep is not None:
            with self._lock:
                self._in_flight.append(created)
                # In order: all commands before one that is done are done, too.
                if len(self._in_flight) > _MOST_IN_FLIGHT and self._in_flight[_MOST_IN_FLIGHT // 2].query():
                    del self._in_flight[: _MOST_IN_FLIGHT // 2 + 1]
        return created

    def marker(self) -> QueueEvent:
        """Returns an event that is done when everything queued until now is done."""
        with driver_call("an event"):
            return QueueEvent(self.cl, cl.enqueue_marker(self.cl))

    def wait_for(self, event: Event) -> None:
        """Make work queued from now on wait for ``event``: in the driver where it is of this context, else here."""
        if isinstance(event, QueueEvent) and event.queue.context == self.cl.context:
            with driver_call("a wait for an event"):
                event.queue.flush()
                cl.enqueue_barrier(self.cl, wait_for=[event.event])
        else:
            event.synchronize()

    def finish(self) -> None:
        """Wait until everything queued now is done, and release what it kept alive. A signal, such as Ctrl-C,
        interrupts it.
        """
        with self._lock:
            before = set(self._in_flight)
        self.marker().synchronize()
        with self._lock:
            self._in_flight = [known for known in self._in_flight if known not in before]


@record(frozen=True)
class DeviceFacts:
    """The constant facts of an instance: the options of its Target, and its memory."""

    options: Mapping[str, Any]
    kinds: Mapping[str, MemoryKind]


class OpenCLInstance:
    """Instance ``index`` of the device API: an open OpenCL device. ``queue`` is its own queue, that of
    ``stream=None``.
    """

    def __init__(self, index: int, found: Found, *, profiling: bool = False) -> None:
        self.index = index
        self.device = found.device
        self.context = found.context
        self.import_alignment = found.import_alignment
        self.profiling = profiling
        self.facts = _facts(found)
        self.base_alignment = int(self.facts.options["memory-alignment"])
        self.queue = Queue(self)
        self.queues: dict[int, Queue] = {self.queue.key: self.queue}
        #: The blocks that kernels have parts of; ``close`` releases these before the interpreter's end does in any
        #: order.
        self.divided: set[BufferBlock] = set()
        #: Held while mappings change: when two of the same bytes are made at once, drivers end one twice.
        self.mapping_lock = new_lock()

    def close(self) -> None:
        """Wait for what is queued, then release the parts of buffers; buffers are released with their owners."""
        for queue in tuple(self.queues.values()):
            queue.finish()
        while self.divided:
            block = self.divided.pop()
            block.release_parts()

    def wait(self, block: MemoryBlock) -> None:
        """Wait for every command that uses ``block``."""
        for key, event in tuple(block.uses.items()):
            queue = self.queues.get(key)
            if queue is not None:
                QueueEvent(queue.cl, event).synchronize()
            else:  # its stream was freed, and was flushed then
                with driver_call("a wait"):
                    event.wait()
            if block.uses.get(key) is event:  # another thread may have queued more since
                block.uses.pop(key, None)


def _facts(found: Found) -> DeviceFacts:
    options = target_options(found)
    return DeviceFacts(options, {kind.scope: kind for kind in Target(options).memory})
