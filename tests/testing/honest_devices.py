"""Devices that keep the contract in ways of their own: whatever the suite demands, it demands of these too."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from landbridge.device.api import Event, Region, Stream
from tests.testing.importing_device import ImportsBehindCaches
from tests.testing.mutants import Correct


class Slow(Correct):
    """All that is queued takes a tenth of a millisecond more."""

    def _submit(self, index: int, stream: Stream | None, what: str, action: Any, **rest: Any) -> Any:
        def late() -> None:
            time.sleep(1e-4)
            action()

        return super()._submit(index, stream, what, action and late, **rest)


class DoneOnReturn(Correct):
    """Copies and launches on stream None are done when they return, whatever other streams have still to do."""

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        return self._waited(super().copy_data_from_to, src, dst, nbytes, stream, keep_alive)

    def launch(
        self, module: object, function: str, grid: Any, block: Any, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        return self._waited(super().launch, module, function, grid, block, args, stream)

    def _waited(self, call: Callable[..., Event | None], *args: Any) -> Event | None:
        event = call(*args)
        if event is not None:
            event.synchronize()
        return None


class SyncsAll(Correct):
    """Waiting for a stream waits for all of them."""

    def stream_sync(self, index: int, stream: Stream | None) -> None:
        super().stream_sync(index, stream)
        self._instances[index].queue.finish_all()


class OneQueue(Correct):
    """All streams are one queue in hardware: an order stricter than is asked. It records nothing."""

    begin_record = end_record = replay = None  # type: ignore[assignment]

    def _key(self, index: int, stream: Stream | None) -> Any:
        super()._key(index, stream)  # which says what is no stream of the device


class NoClock(Correct):
    """Events have no times, and attributes are not known."""

    def elapsed_ms(self, start: Event, end: Event) -> float | None:
        return None

    def get_attr(self, index: int, attr: Any) -> object | None:
        return None


_STREAMS = "create_stream free_stream set_stream get_stream stream_sync sync_stream_from_to"
_EVENTS = "record_event wait_event elapsed_ms"
_MEMORY = "import_memory release_import export_fd alloc_shared_space alloc_workspace free_workspace"
_WORK = "begin_record end_record replay load_module launch module_formats device_address"
_NO_ABILITIES = f"{_STREAMS} {_EVENTS} {_MEMORY} {_WORK} open close reset"
Least = type("Least", (Correct,), {"__doc__": "Has memory and copies alone.", **dict.fromkeys(_NO_ABILITIES.split())})

HONEST = (Slow, DoneOnReturn, SyncsAll, OneQueue, NoClock, Least, ImportsBehindCaches)
