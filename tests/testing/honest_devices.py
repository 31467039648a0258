"""Devices that keep the contract in ways of their own: whatever the suite demands, it demands of these too."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from landbridge.device.api import Device, Event, Region, Space, Stream
from landbridge.device.import_source import HostPointer, ImportSource
from landbridge.device.protocols import AccessMode
from landbridge.memory_kind import MemoryKind
from landbridge.testing.lazy_instance import LazyBlock
from tests.testing.importing_device import ImportsBehindCaches
from tests.testing.mutants import Correct

_PAGE = 4096


class Slow(Correct):
    """All that is queued takes a tenth of a millisecond more."""

    def _submit(self, index: int, stream: Stream | None, subject: str, action: Any, **rest: Any) -> Any:
        def late() -> None:
            time.sleep(1e-4)
            action()

        return super()._submit(index, stream, subject, action and late, **rest)


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


class HiddenAlone(Correct):
    """All its memory is hidden from the host."""

    host_pointer = begin_host_access = end_host_access = None  # type: ignore[assignment]
    alloc_shared_space = export_fd = import_source = None  # type: ignore[assignment]
    import_memory = release_import = None  # type: ignore[assignment]

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        return {"global": self._kinds["global"]}


class PagesAreFlushed(Correct):
    """Barriers reach whole pages, which no two spaces share."""

    def __init__(self) -> None:
        super().__init__()
        pages = {"coherence_granule": _PAGE, "alignment": _PAGE, "size_multiple": _PAGE}
        self._kinds = {**self._kinds, "cached": replace(self._kinds["cached"], **pages)}

    def begin_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        super().begin_host_access(*_pages(region, nbytes), mode)

    def end_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        super().end_host_access(*_pages(region, nbytes), mode)


def _pages(region: Region, nbytes: int) -> tuple[Region, int]:
    """The whole pages around the bytes, none beside the space."""
    start, size = region.byte_offset // _PAGE * _PAGE, region.space.handle.data.nbytes
    stop = -(-(region.byte_offset + nbytes) // _PAGE) * _PAGE
    return replace(region, byte_offset=start), max(0, min(stop, size) - start)


class NoEvents(Correct):
    """Has streams, and no events but those of copies and launches."""

    record_event = wait_event = elapsed_ms = None  # type: ignore[assignment]


class NoStreams(Correct):
    """Has events, and one queue."""

    create_stream = free_stream = set_stream = get_stream = None  # type: ignore[assignment]
    stream_sync = sync_stream_from_to = None  # type: ignore[assignment]
    begin_record = end_record = replay = None  # type: ignore[assignment]


class CoarseMemory(Correct):
    """Spaces begin at pages and are made of 512 bytes; kernels take operands at multiples of 256."""

    def __init__(self) -> None:
        super().__init__()
        coarse = {"alignment": _PAGE, "size_multiple": 512, "offset_alignment": 256}
        self._kinds = {scope: replace(kind, **coarse) for scope, kind in self._kinds.items()}


class ImportsPartsOfItsArena(Correct):
    """Of its own memory it imports any part by the host's address, and nothing else."""

    def import_memory(self, index: int, source: ImportSource, access: AccessMode) -> Space:
        for space in tuple(self._blocks.values()):
            block = space.handle
            if (space.device.index, space.scope) != (index, "shared") or not isinstance(source, HostPointer):
                continue
            at = source.address - block.address
            if block.alive and 0 <= at <= block.data.nbytes - source.nbytes:
                part = LazyBlock(block.instance, "shared", 0, 1)
                part.data, part.address = block.data[at : at + source.nbytes], source.address
                return Space(Device(self, index), "shared", part)
        return super().import_memory(index, source, access)


_STREAMS = "create_stream free_stream set_stream get_stream stream_sync sync_stream_from_to"
_EVENTS = "record_event wait_event elapsed_ms"
_MEMORY = "import_memory release_import export_fd alloc_shared_space alloc_workspace free_workspace"
_WORK = "begin_record end_record replay load_module launch module_formats device_address"
_NO_ABILITIES = f"{_STREAMS} {_EVENTS} {_MEMORY} {_WORK} open close reset"
Least = type("Least", (Correct,), {"__doc__": "Has memory and copies alone.", **dict.fromkeys(_NO_ABILITIES.split())})

HONEST = (
    Slow,
    DoneOnReturn,
    SyncsAll,
    OneQueue,
    NoClock,
    HiddenAlone,
    PagesAreFlushed,
    NoEvents,
    NoStreams,
    CoarseMemory,
    ImportsPartsOfItsArena,
    ImportsBehindCaches,
    Least,
)
