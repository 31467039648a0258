"""The instances of ``sim:lazy``: their lifecycle, their streams, and the order of queued work."""

from __future__ import annotations

import os
import threading
from typing import Any

from landbridge.device.api import Device, DeviceAPI, Event, Stream
from landbridge.device.checks import stream_handle
from landbridge.errors import DeviceIndexError, InputError
from landbridge.testing.lazy_instance import Hold, LazyInstance, StreamHandle
from landbridge.testing.lazy_queue import Task

SEED_VARIABLE = "LANDBRIDGE_SIM_SEED"

_INSTANCES = 2
_CLOSE_PATIENCE = 1.0  # seconds


class LazyStreams(DeviceAPI):
    """Two instances, whose queued work runs in an order that ``seed`` chooses; None: ``LANDBRIDGE_SIM_SEED`` or 0."""

    def __init__(self, seed: int | None = None) -> None:
        self.seed = int(os.environ.get(SEED_VARIABLE, "0")) if seed is None else seed
        self._instances = [LazyInstance(index, self.seed) for index in range(_INSTANCES)]
        self._current = threading.local()

    def count(self) -> int:
        """Always 2."""
        return _INSTANCES

    # --- lifecycle ---------------------------------------------------------------------------------------------

    def open(self, index: int, **options: object) -> None:
        """Starts instance ``index`` with the option ``seed``; restarts it where it was closed, lost, or has another
        seed.
        """
        unknown = sorted(set(options) - {"seed"})
        seed = options.get("seed", self.seed)
        if unknown or not isinstance(seed, int):
            raise InputError(f"sim:lazy: cannot open with {options}; legal: seed, an int")
        if self._instance(index).queue.lost or seed != self.seed:
            self.seed = seed
            self._begin(index)

    def close(self, index: int) -> None:
        """Finishes what is queued on instance ``index``, unless a hold blocks it, and loses it."""
        queue = self._instance(index).queue
        if not queue.lost:
            queue.finish_all(_CLOSE_PATIENCE)
            queue.lose()

    def reset(self, index: int) -> None:
        """Drops what is queued on instance ``index`` and restarts it."""
        self._begin(index)

    def lose(self, index: int) -> None:
        """Removes the device, as a driver crash does: from now on every call raises DeviceLostError."""
        self._instance(index).queue.lose()

    # --- streams and events ------------------------------------------------------------------------------------

    def create_stream(self, index: int) -> Stream:
        """Makes a queue that nothing orders with the others."""
        return Stream(Device(self, index), StreamHandle(self._live(index)))

    def free_stream(self, stream: Stream) -> None:
        """Ends a stream: queued work still runs; nothing more may be queued."""
        stream.handle.alive = False

    def set_stream(self, index: int, stream: Stream | None) -> None:
        """Sets this thread's stream of the instance, for ``get_stream``; the queues do not change."""
        self._key(index, stream)
        vars(self._current)[str(index)] = stream

    def get_stream(self, index: int) -> Stream | None:
        """Returns the stream that this thread set last."""
        found: Stream | None = vars(self._current).get(str(index))
        return found

    def stream_sync(self, index: int, stream: Stream | None) -> None:
        """Runs all that is queued on ``stream``."""
        self._live(index).queue.finish_stream(self._key(index, stream))

    def sync_stream_from_to(self, index: int, source: Stream | None, target: Stream | None) -> None:
        """Makes what is queued on ``target`` from now on run after all that is on ``source`` now."""
        last = self._live(index).queue.last(self._key(index, source))
        if last is not None:
            self._submit(index, target, "a barrier", None, after=(last,))

    def record_event(self, index: int, stream: Stream | None) -> Task:
        """Returns an event after all that is on ``stream`` now."""
        return self._submit(index, stream, "an event", None)

    def wait_event(self, index: int, stream: Stream | None, event: Event) -> None:
        """Makes what is queued on ``stream`` from now on run after ``event``."""
        if isinstance(event, Task) and not event.done:
            self._submit(index, stream, "a wait", None, after=(event,))

    def elapsed_ms(self, start: Event, end: Event) -> float | None:
        """Returns the milliseconds between two completed events, by the times of completion; None before."""
        times = [event.finished_ms for event in (start, end) if isinstance(event, Task)]
        if len(times) < 2 or times[0] is None or times[1] is None:
            return None
        return times[1] - times[0]

    def hold(self, index: int, stream: Stream | None = None) -> Hold:
        """Keeps ``stream`` from running anything queued from now on until the Hold is released."""
        instance = self._live(index)
        return Hold(instance.queue, instance.queue.submit(self._key(index, stream), "a hold", held=True))

    # --- inside ------------------------------------------------------------------------------------------------

    def _submit(self, index: int, stream: Stream | None, subject: str, action: Any, **rest: Any) -> Task:
        target = stream.device.index if stream is not None else index
        return self._live(target).queue.submit(self._key(target, stream), subject, action, **rest)

    def _begin(self, index: int) -> None:
        self._instance(index).queue.lose()
        self._instances[index] = LazyInstance(index, self.seed)

    def _instance(self, index: int) -> LazyInstance:
        if not 0 <= index < _INSTANCES:
            raise DeviceIndexError(f"sim:lazy:{index} does not exist; legal indices: 0 to {_INSTANCES - 1}")
        return self._instances[index]

    def _live(self, index: int) -> LazyInstance:
        instance = self._instance(index)
        instance.queue.check()
        return instance

    def _key(self, index: int, stream: Stream | None) -> StreamHandle | None:
        if stream is None:
            return None
        handle: StreamHandle = stream_handle(self, index, stream)
        handle.instance.queue.check()
        return handle
