"""Mutants of the barriers around the host's access, on memory that the host sees through its caches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from landbridge.device.api import Region, Space
from landbridge.device.protocols import AccessMode
from landbridge.memory_kind import MemoryKind
from landbridge.testing.board_memory import CachedBlock
from tests.testing.mutants import Correct


class _Barriers(Correct):
    """Barriers go through ``begin`` and ``end``."""

    def begin_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        self.begin(region, nbytes, mode)

    def end_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        self.end(region, nbytes, mode)

    def begin(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        super().begin_host_access(region, nbytes, mode)

    def end(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        super().end_host_access(region, nbytes, mode)


class ReadsAndWritesOldBytes(_Barriers):
    """Mode rw brings nothing."""

    caught_by = "test_the_host_sees_what_the_device_wrote"

    def begin(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        super().begin(region, nbytes, "w" if mode == "rw" else mode)


class BringsTheFirstBytes(_Barriers):
    """begin_host_access takes the offset for 0."""

    caught_by = "test_the_host_sees_what_the_device_wrote"

    def begin(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        super().begin(Region(region.space), nbytes, mode)


class BringsWholeLinesAlone(_Barriers):
    """begin_host_access rounds the range inwards to cache lines."""

    caught_by = "test_the_host_sees_what_the_device_wrote"

    def begin(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        start, stop = -(-region.byte_offset // 64) * 64, (region.byte_offset + nbytes) // 64 * 64
        super().begin(Region(region.space, start), max(0, stop - start), mode)


class BringsOnePage(_Barriers):
    """begin_host_access is for the first page of a range."""

    caught_by = "test_the_host_sees_what_the_device_wrote"

    def begin(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        super().begin(region, min(nbytes, 4096 - region.byte_offset % 4096), mode)


class BringsSixteenBits(_Barriers):
    """begin_host_access takes the low 16 bits of an offset."""

    caught_by = "test_the_host_sees_what_the_device_wrote"

    def begin(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        super().begin(Region(region.space, region.byte_offset & 0xFFFF), nbytes, mode)


class FlushesSixteenBits(_Barriers):
    """end_host_access takes the low 16 bits of an offset."""

    caught_by = "test_the_device_sees_what_the_host_wrote"

    def end(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        super().end(Region(region.space, region.byte_offset & 0xFFFF), nbytes, mode)


class FlushesTheFirstBytes(_Barriers):
    """end_host_access takes the offset for 0."""

    caught_by = "test_the_device_sees_what_the_host_wrote"

    def end(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        super().end(Region(region.space), nbytes, mode)


class FlushesOneLine(_Barriers):
    """end_host_access flushes the first line of the range."""

    caught_by = "test_the_device_sees_what_the_host_wrote"

    def end(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        super().end(region, min(nbytes, 64), mode)


class FlushesWAlone(_Barriers):
    """end_host_access flushes in mode w, and not in rw."""

    caught_by = "test_the_device_sees_what_the_host_wrote"

    def end(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        super().end(region, nbytes, "r" if mode == "rw" else mode)


class BringsOldBytesBack(_Barriers):
    """rw does not invalidate: what the host's caches hold is flushed over what the device wrote."""

    caught_by = "test_rw_keeps_what_the_host_does_not_write"

    def begin(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        super().begin(region, nbytes, "w" if mode == "rw" else mode)


class FlushesAll(_Barriers):
    """end_host_access flushes the whole space."""

    caught_by = "test_a_flush_leaves_the_neighbours"

    def end(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        super().end(Region(region.space), region.space.handle.data.nbytes, mode)


class FlushesAPage(_Barriers):
    """end_host_access flushes the neighbours' lines of the page, too."""

    caught_by = "test_a_flush_leaves_the_neighbours"

    def end(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        start = region.byte_offset // 4096 * 4096
        stop = -(-(region.byte_offset + nbytes) // 4096) * 4096
        super().end(Region(region.space, start), stop - start, mode)


class FlushesALineMore(_Barriers):
    """end_host_access flushes the next line, too."""

    caught_by = "test_a_flush_leaves_the_neighbours"

    def end(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        super().end(region, nbytes + 1, mode)


class InvalidatesAll(_Barriers):
    """begin_host_access drops what the host wrote anywhere in the space."""

    caught_by = "test_an_invalidation_leaves_the_neighbours"

    def begin(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        super().begin(Region(region.space), region.space.handle.data.nbytes, mode)


class FlushesWhatWasRead(_Barriers):
    """end_host_access flushes in mode r, too."""

    caught_by = "test_reading_flushes_nothing"

    def end(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        super().end(region, nbytes, "w")


class WaitsForWritersAlone(_Barriers):
    """A writer waits for pending writers, and not for readers."""

    caught_by = "test_writing_waits_for_readers"

    def _pending(self, block: object, start: int, stop: int, *, writes: bool) -> list[object]:  # type: ignore[override]
        return super()._pending(block, start, stop, writes=False)  # type: ignore[arg-type, return-value]


class SaidToBeCoherent(Correct):
    """Memory behind caches is said to be coherent."""

    caught_by = "test_coherent_means_coherent"

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        kinds = super().memory_kinds(index)
        return {**kinds, "cached": replace(kinds["cached"], coherent=True, coherence_granule=1)}


class PointersMove(Correct):
    """host_pointer maps the space anew after each access."""

    caught_by = "test_host_pointer_stays"

    def end_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        super().end_host_access(region, nbytes, mode)
        block = region.space.handle
        if isinstance(block, CachedBlock):
            block.moved = block.host  # type: ignore[attr-defined]
            block.host = block.host.copy()
            block.host_address = int(block.host.ctypes.data)


class OneWindow(Correct):
    """Spaces are mapped into one window: two have the same address."""

    caught_by = "test_host_pointer_stays"
    window: int | None = None

    def host_pointer(self, space: Space) -> int:
        if space.scope != "cached" or space.handle.data.nbytes != 4096:
            return super().host_pointer(space)
        if self.window is None:
            self.window = super().host_pointer(space)
            self.retained = space.handle.host
        return self.window


class WaitsForStreamNoneAlone(_Barriers):
    """begin_host_access waits for what is queued on stream None, and for no other stream."""

    caught_by = "test_begin_host_access_waits_for_streams"

    def begin_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        self.stream_sync(region.space.device.index, None)
        block = region.space.handle
        block.host_accesses += 1
        if isinstance(block, CachedBlock) and mode != "w":
            lines = slice(region.byte_offset // 64 * 64, -(-(region.byte_offset + nbytes) // 64) * 64)
            block.host[lines] = block.data[lines]


class BringsTheBytesAlone(_Barriers):
    """begin_host_access brings the bytes of the range alone, and end_host_access flushes their whole lines."""

    caught_by = "test_the_rest_of_a_granule_stays"

    def begin(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        super().begin(region, nbytes, "w")
        block = region.space.handle
        if isinstance(block, CachedBlock) and mode != "w":
            part = slice(region.byte_offset, region.byte_offset + nbytes)
            block.host[part] = block.data[part]


class OneWriterForASpace(_Barriers):
    """Of a space the last access that writes is remembered: the first that ends flushes it, others nothing."""

    caught_by = "test_nested_accesses"

    def __init__(self) -> None:
        super().__init__()
        self.writing: dict[object, tuple[Region, int]] = {}

    def begin(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        super().begin(region, nbytes, mode)
        if mode != "r":
            self.writing[region.space.handle] = region, nbytes

    def end(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        if mode == "r":
            super().end(region, nbytes, mode)
        elif (found := self.writing.pop(region.space.handle, None)) is not None:
            super().end(*found, mode)


class TheInnerAccessInvalidatesAll(_Barriers):
    """An access inside another one brings the whole space: what the outer one wrote is lost."""

    caught_by = "test_nested_accesses"

    def begin(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        inside = region.space.handle.host_accesses > 0 and mode == "rw"
        super().begin(*((Region(region.space), region.space.handle.data.nbytes) if inside else (region, nbytes)), mode)
