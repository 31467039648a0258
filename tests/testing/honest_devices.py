"""Devices that keep the contract in ways of their own: whatever the suite demands, it demands of these too."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from landbridge.device.api import Device, Event, Region, Space, Stream
from landbridge.device.import_source import HostPointer, ImportSource
from landbridge.device.protocols import AccessMode
from landbridge.errors import InputError, ResourceLimitError
from landbridge.memory_kind import MemoryKind
from landbridge.testing.lazy_instance import LazyBlock
from tests.testing.arithmetic_mutants import flush_denormals
from tests.testing.importing_device import ImportsBehindCaches
from tests.testing.launch_mutants import refuse_one_space_twice
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
    """All streams are one queue in hardware: an order stricter than is asked. It records nothing, and waits for no
    fences there, as all streams would wait.
    """

    begin_record = end_record = replay = None  # type: ignore[assignment]
    wait_fence = signal_fence = None  # type: ignore[assignment]

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


class FewStreams(Correct):
    """Has four streams of an instance at a time, besides its own queue."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[Any] = []

    def create_stream(self, index: int) -> Stream:
        self.made = [each for each in self.made if each.handle.alive and not each.handle.instance.queue.lost]
        if sum(each.device.index == index for each in self.made) >= 4:
            raise ResourceLimitError(f"mutant:{index} has four streams, all of which are taken; free one")
        self.made.append(super().create_stream(index))
        return self.made[-1]


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


class OneTensorPerSpace(Correct):
    """Refuses a launch that would read and write one space, and says so."""

    def __init__(self) -> None:
        super().__init__()
        # The suite closes the device behind the runtime's back, so that an allocator may retain nothing.
        fact = {"one_tensor_per_space": True, "allocators": ("naive",)}
        self._kinds = {scope: replace(kind, **fact) for scope, kind in self._kinds.items()}

    def launch(
        self, module: object, function: str, grid: Any, block: Any, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        refuse_one_space_twice(function, args)
        return super().launch(module, function, grid, block, args, stream)


class CopiesWords(Correct):
    """Copies four bytes at once, from and to multiples of four, and refuses others."""

    def __init__(self) -> None:
        super().__init__()
        self._kinds = {scope: replace(kind, copy_granule=4) for scope, kind in self._kinds.items()}

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        offsets = [end.byte_offset for end in (src, dst) if end.space.device.api is self]
        if any(number % 4 for number in (*offsets, nbytes)):
            raise InputError(f"mutant copies words, not {nbytes} bytes at {offsets}")
        return super().copy_data_from_to(src, dst, nbytes, stream, keep_alive)


class OwnArithmetic(Correct):
    """Denormal results are zeros and infinities in kernels are NaNs, and its target says so."""

    def target_properties(self, index: int) -> Mapping[str, Any]:
        return {"denormals": "flush", "infinities": False}

    def edited(self, text: str) -> str:
        return text.replace("INFINITY", "NAN")

    def launch(
        self, module: Any, function: str, grid: Any, block: Any, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        kernel = module if function == "no_such_kernel" else getattr(module, function)

        def run(grid: Any, block: Any, *arrays: Any) -> None:
            kernel(grid, block, *arrays)
            flush_denormals(function, arrays[-1])

        instead = module if kernel is module else SimpleNamespace(**{function: run})
        return super().launch(instead, function, grid, block, args, stream)


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
_WORK = "wait_fence signal_fence begin_record end_record replay load_module launch module_formats device_address"
_NO_ABILITIES = f"{_STREAMS} {_EVENTS} {_MEMORY} {_WORK} open close reset suspend resume"
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
    FewStreams,
    NoStreams,
    CoarseMemory,
    OneTensorPerSpace,
    CopiesWords,
    OwnArithmetic,
    ImportsPartsOfItsArena,
    ImportsBehindCaches,
    Least,
)
