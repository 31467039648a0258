"""``sim:board``: ``sim:lazy`` with features of boards: caches, addresses, imports, exports, recordings.

Scope ``cached`` is memory that the host sees through its caches, lines of 64 bytes: nothing either side writes reaches
the other without a barrier. Imports are of the board's own memory alone, by address, bus address or file descriptor.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, ClassVar

from landbridge.device.api import Device, Event, Region, Space, Stream
from landbridge.device.attr import DeviceAttr
from landbridge.device.checks import check_request, kind_of
from landbridge.device.import_source import BusAddress, DmaBuf, HostPointer, ImportSource
from landbridge.device.protocols import AccessMode
from landbridge.errors import DeviceError, InputError, OutOfMemoryError, ZeroCopyError
from landbridge.identity_map import IdentityMap
from landbridge.records import record
from landbridge.testing.board_memory import CachedBlock, ExportedBlock
from landbridge.testing.lazy_fences import LazyFences
from landbridge.testing.lazy_instance import LazyBlock
from landbridge.testing.lazy_suspension import LazySuspension
from landbridge.testing.sim_lazy import SimLazyDeviceAPI

_LINE = 64
#: What the device's addresses are more than the host's, so that one taken for the other is found. All have 48 bits.
_BUS_OFFSET = 1 << 32
_ATTRIBUTES = {
    DeviceAttr.VENDOR: "Landbridge",
    DeviceAttr.DRIVER_VERSION: "1.0",
    DeviceAttr.COMPUTE_UNITS: 4,
    DeviceAttr.MAX_THREADS_PER_BLOCK: 64,
    DeviceAttr.MAX_BLOCK_DIMENSIONS: (64, 64, 4),
    DeviceAttr.SUBGROUP_SIZE: 8,
    DeviceAttr.LOCAL_MEMORY_BYTES: 16384,
    DeviceAttr.REGISTERS_PER_BLOCK: 4096,
    DeviceAttr.MEMORY_CLOCK_HZ: 400_000_000,
    DeviceAttr.IMAGE_PITCH_BYTES: _LINE,
    DeviceAttr.API_VERSION: "1",
    DeviceAttr.MAX_CLOCK_HZ: 800_000_000,
    DeviceAttr.PAGE_BYTES: 4096,
    DeviceAttr.CACHE_LINE_BYTES: _LINE,
    DeviceAttr.FEATURES: ("python",),
}


@record
class BoardRecording:
    """Commands recorded instead of run. ``regions`` are bound to positions; other arguments are as in the call."""

    regions: list[Region] = field(default_factory=list)
    commands: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)

    def add(self, subject: str, *args: Any) -> None:
        """Records a command; regions among ``args``, and in lists among them, become positions."""
        self.commands.append((subject, tuple(self._noted(arg) for arg in args)))

    def bound(self, args: tuple[Any, ...]) -> list[Any]:
        """Returns ``args`` of a command with the regions that their positions are bound to now."""
        return [self._bound(arg) for arg in args]

    def _noted(self, arg: Any) -> Any:
        if isinstance(arg, list):
            return [self._noted(one) for one in arg]
        if not isinstance(arg, Region):
            return arg
        if arg not in self.regions:
            self.regions.append(arg)
        return _Position(self.regions.index(arg))

    def _bound(self, arg: Any) -> Any:
        if isinstance(arg, list):
            return [self._bound(one) for one in arg]
        return self.regions[arg.number] if isinstance(arg, _Position) else arg


@record(frozen=True)
class _Position:
    number: int


class SimBoardDeviceAPI(LazyFences, LazySuspension, SimLazyDeviceAPI):
    """Two instances, with scopes ``global`` (hidden), ``shared`` (coherent) and ``cached`` (not coherent)."""

    name: ClassVar[str] = "sim:board"

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(seed)
        changes: dict[str, Any] = {"dma_address_bits": 48, "physically_contiguous": True}
        shared = replace(self._kinds["shared"], importable=True, exportable=True, **changes)
        cached = replace(shared, scope="cached", coherent=False, coherence_granule=_LINE, exportable=False)
        self._kinds = {"global": replace(self._kinds["global"], **changes), "shared": shared, "cached": cached}
        self._blocks: IdentityMap[object, Space] = IdentityMap()
        self._recordings: dict[object, BoardRecording] = {}

    def get_attr(self, index: int, attr: DeviceAttr) -> object | None:
        """Returns facts of a small board; for other attributes, those of ``sim:lazy``."""
        return _ATTRIBUTES.get(attr) or super().get_attr(index, attr)

    # --- memory ------------------------------------------------------------------------------------------------

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        """Allocates a poisoned block; one of ``cached`` also has the bytes that the host sees."""
        space = super().alloc_data_space(index, nbytes, alignment, scope, type_hint)
        if space.scope == "cached":
            block: LazyBlock = space.handle
            aligned = max(alignment, self._kinds["cached"].alignment)
            space = replace(space, handle=CachedBlock(block.instance, "cached", nbytes, aligned))
        self._blocks[space.handle] = space
        return space

    def alloc_shared_space(self, index: int, nbytes: int, alignment: int, scope: str) -> Space:
        """Allocates a block of ``shared`` that ``export_fd`` exports; aligned to a page at most."""
        instance = self._live(index)
        kind = kind_of(self._kinds, scope, f"{self.name}:{index}")
        check_request(nbytes, alignment, f"{self.name}:{index}")
        if not kind.exportable or alignment > 4096:
            raise InputError(
                f"{self.name}: no shared memory of scope {scope!r}, aligned to {alignment}; legal: shared, 4096"
            )
        with self._lock:
            if nbytes > (kind.capacity or 0) - instance.used_bytes:
                raise OutOfMemoryError(f"{self.name}:{index}: {nbytes} bytes requested, {instance.used_bytes} used")
            instance.used_bytes += nbytes
        space = Space(Device(self, index), kind.scope, ExportedBlock(instance, kind.scope, nbytes, kind.alignment))
        self._blocks[space.handle] = space
        return space

    def free_data_space(self, space: Space) -> None:
        """Frees as ``sim:lazy`` does; an exported block stays with its other holders."""
        self._blocks.pop(space.handle)
        if isinstance(space.handle, ExportedBlock) and space.handle.alive:
            self._finish(space.handle)
            space.handle.release()
        super().free_data_space(space)

    def alloc_workspace(self, index: int, nbytes: int, stream: Stream | None) -> Space:
        """Allocates a block of ``global``."""
        return self.alloc_data_space(index, nbytes, 1, "global", None)

    def free_workspace(self, space: Space) -> None:
        """Frees as ``free_data_space`` does."""
        self.free_data_space(space)

    # --- host access -------------------------------------------------------------------------------------------

    def host_pointer(self, space: Space) -> int:
        """Returns the address that the host uses: for ``cached``, that of the content of its caches."""
        block = self._block(space)
        return block.host_address if isinstance(block, CachedBlock) else super().host_pointer(space)

    def end_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        """Writes back the lines of ``cached`` that were written."""
        block = region.space.handle
        if isinstance(block, CachedBlock) and mode != "r":
            lines = _lines(region.byte_offset, nbytes)
            block.data[lines] = block.host[lines]
        super().end_host_access(region, nbytes, mode)

    # --- addresses, imports, exports ---------------------------------------------------------------------------

    def device_address(self, region: Region) -> int:
        """Returns an address of the simulated bus, of 48 bits."""
        return self._block(region.space).address + _BUS_OFFSET + region.byte_offset

    def import_memory(self, index: int, source: ImportSource, access: AccessMode) -> Space:
        """Imports a block of this instance, from its first byte on. Raises ZeroCopyError for any other memory."""
        self._live(index)
        for space in tuple(self._blocks.values()):
            if space.device.index == index and self._is_of(space, source) and source.nbytes <= space.handle.data.nbytes:
                return space
        raise ZeroCopyError(f"{self.name}:{index} imports the memory of its own allocations alone, not {source}")

    def release_import(self, space: Space) -> None:
        """Does nothing, as the import allocated nothing."""

    def export_fd(self, space: Space) -> int:
        """Returns a file descriptor of memory from ``alloc_shared_space``; the caller closes it."""
        block = self._block(space)
        if not isinstance(block, ExportedBlock):
            raise ZeroCopyError(f"{block} was not made to be shared; allocate it with alloc_shared_space")
        return os.dup(block.file)

    def import_source(self, space: Space) -> DmaBuf | None:
        """Returns the file of memory from ``alloc_shared_space``."""
        block = self._block(space)
        return DmaBuf(block.file, 0, block.data.nbytes) if isinstance(block, ExportedBlock) else None

    # --- recordings --------------------------------------------------------------------------------------------

    def begin_record(self, index: int, stream: Stream | None) -> None:
        """Starts to record work on ``stream``."""
        key = index, self._key(index, stream)
        if key in self._recordings:
            raise DeviceError(f"{self.name}:{index} is recording this stream already; call end_record first")
        self._recordings[key] = BoardRecording()

    def end_record(self, index: int, stream: Stream | None) -> object:
        """Returns the recording."""
        recording = self._recordings.pop((index, self._key(index, stream)), None)
        if recording is None:
            raise DeviceError(f"{self.name}:{index} is not recording this stream; call begin_record first")
        return recording

    def replay(self, recording: object, args: Mapping[int, Region], stream: Stream | None) -> Event | None:
        """Queues the recorded work, with other regions."""
        if not isinstance(recording, BoardRecording):
            raise InputError(f"{self.name} replays recordings of its own, not {recording!r}")
        for position, region in args.items():
            if not 0 <= position < len(recording.regions):
                raise InputError(f"a recording of {len(recording.regions)} regions has no position {position}")
            recording.regions[position] = region
        event: Event | None = None
        for subject, noted in recording.commands:
            values: Any = recording.bound(noted)
            if subject == "copy":
                event = self.copy_data_from_to(values[0], values[1], values[2], stream, None) or event
            else:
                event = self.launch(values[0], values[1], values[2], values[3], values[4], stream)
        return event

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        """Queues the copy, or records it."""
        recording = self._recording(stream, src, dst)
        if recording is None:
            return super().copy_data_from_to(src, dst, nbytes, stream, keep_alive)
        recording.add("copy", src, dst, nbytes)
        return None

    def launch(
        self,
        module: object,
        function: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        args: Sequence[Region | int | float],
        stream: Stream | None,
    ) -> Event | None:
        """Queues the launch, or records it."""
        recording = self._recording(stream, *(arg for arg in args if isinstance(arg, Region)))
        if recording is None:
            return super().launch(module, function, grid, block, args, stream)
        recording.add("launch", module, function, grid, block, list(args))
        return None

    # --- inside ------------------------------------------------------------------------------------------------

    def _open(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        """Begins an access of the host; lines of ``cached`` that are read come from memory."""
        super()._open(region, nbytes, mode)
        block = region.space.handle
        if isinstance(block, CachedBlock) and mode != "w":
            lines = _lines(region.byte_offset, nbytes)
            block.host[lines] = block.data[lines]

    def _recording(self, stream: Stream | None, *regions: Region) -> BoardRecording | None:
        if not self._recordings:
            return None
        owned = (region.space.device.index for region in regions if region.space.device.api is self)
        index = stream.device.index if stream is not None else next(owned, 0)
        return self._recordings.get((index, self._key(index, stream)))

    def _is_of(self, space: Space, source: ImportSource) -> bool:
        """Returns whether ``source`` is memory of ``space`` from its first byte on."""
        block = space.handle
        if space.scope == "global":
            return False
        match source:
            case HostPointer(address=address):
                return address == (block.host_address if isinstance(block, CachedBlock) else block.address)
            case BusAddress(address=address):
                return bool(address == block.address + _BUS_OFFSET)
            case DmaBuf(fd=fd, offset=0) if isinstance(block, ExportedBlock):
                try:
                    return os.path.samestat(os.fstat(fd), os.fstat(block.file))
                except OSError:
                    return False
        return False

    def _finish(self, block: LazyBlock) -> None:
        for task in self._pending(block, 0, block.data.nbytes, writes=True):
            task.synchronize()


def _lines(start: int, nbytes: int) -> slice:
    """Returns the whole cache lines that ``nbytes`` bytes from ``start`` on lie in."""
    return slice(start // _LINE * _LINE, -(-(start + nbytes) // _LINE) * _LINE)
