"""The optional abilities of a DeviceAPI, one Protocol each: a device that has the methods has the capability.

Ask with ``device.capability(HostMemory)``; nothing asks for a name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Literal, Protocol, runtime_checkable

from landbridge.device.space import ImportSource, Region, Space
from landbridge.device.stream import Stream
from landbridge.memory_kind import MemoryKind

AccessMode = Literal["r", "w", "rw"]


class Event(Protocol):
    """A point in a stream's queue. Not an ability of a device: what its asynchronous methods return."""

    def query(self) -> bool:
        """Whether everything before this point has completed."""

    def synchronize(self, timeout: float | None = None) -> bool:
        """Wait at most ``timeout`` seconds (None: for ever), interruptibly; whether it has completed."""


@runtime_checkable
class Lifecycle(Protocol):
    """Devices that must be opened, closed or reset (bitstream, firmware). Absent: nothing to do."""

    def open(self, index: int, **options: object) -> None: ...
    def close(self, index: int) -> None: ...
    def reset(self, index: int) -> None: ...


@runtime_checkable
class WorkspaceMemory(Protocol):
    """Short-lived scratch memory. Absent: a stack-like pool over data space serves."""

    def alloc_workspace(self, index: int, nbytes: int, stream: Stream | None) -> Space: ...
    def free_workspace(self, space: Space) -> None: ...


@runtime_checkable
class Streams(Protocol):
    """Queues besides the in-order one. Absent: one in-order stream, and no Stream can be created."""

    def create_stream(self, index: int) -> Stream: ...
    def free_stream(self, stream: Stream) -> None: ...
    def set_stream(self, index: int, stream: Stream | None) -> None: ...
    def stream_sync(self, index: int, stream: Stream | None) -> None: ...
    def sync_stream_from_to(self, index: int, source: Stream | None, target: Stream | None) -> None: ...


@runtime_checkable
class Events(Protocol):
    """Points in a stream that can be waited for, and timed by the device's clock (milliseconds or None)."""

    def record_event(self, index: int, stream: Stream | None) -> Event: ...
    def wait_event(self, index: int, stream: Stream | None, event: Event) -> None: ...
    def event_query(self, event: Event) -> bool: ...
    def event_synchronize(self, event: Event, timeout: float | None) -> bool: ...
    def elapsed_ms(self, start: Event, end: Event) -> float | None: ...


@runtime_checkable
class HostMemory(Protocol):
    """Memory the host can address. Absent: no host view."""

    def host_pointer(self, space: Space) -> int: ...


@runtime_checkable
class SharedMemory(Protocol):
    """Memory made for others to map too, given back by ``free_data_space``. Absent: all of it is alike."""

    def alloc_shared_space(self, index: int, nbytes: int, alignment: int, scope: str) -> Space: ...


@runtime_checkable
class HostBarriers(Protocol):
    """Barriers around host access. Absent: they are no-ops, legal only for a coherent kind."""

    def begin_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None: ...
    def end_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None: ...


@runtime_checkable
class MemoryImport(Protocol):
    """Memory of others, used in place; raises ZeroCopyError with the reason. ``access``: "r" or "rw"."""

    def import_memory(self, index: int, source: ImportSource, access: AccessMode) -> Space: ...
    def release_import(self, space: Space) -> None: ...


@runtime_checkable
class MemoryExport(Protocol):
    """This device's memory as a file descriptor (dma-buf) that the caller closes."""

    def export_fd(self, space: Space) -> int: ...


class PeerUse(Enum):
    """How a device uses memory of another: IN_PLACE, or after a COPY."""

    IN_PLACE = "in_place"
    COPY = "copy"


@runtime_checkable
class PeerAccess(Protocol):
    """Memory of other devices, used in place. Absent: COPY."""

    def can_use(self, index: int, kind: MemoryKind) -> PeerUse: ...
    def map_storage(self, index: int, space: Space) -> Space: ...


@runtime_checkable
class PeerCopy(Protocol):
    """Copies whose ends lie on different devices. Absent: only copies within the device."""

    def can_copy(self, src: Space, dst: Space) -> bool: ...


@runtime_checkable
class Addresses(Protocol):
    """Addresses as the device must use them (IOVA under an IOMMU), and the physical ones, for diagnosis only."""

    def device_address(self, region: Region) -> int: ...
    def physical_address(self, region: Region) -> int | None: ...


@runtime_checkable
class NdSpaces(Protocol):
    """Spaces of more than one dimension. The handle has ``row_pitch`` in bytes or ``rows``, a table of handles."""

    def alloc_data_space_nd(
        self, index: int, physical_shape: Sequence[int], dtype: str, scope: str, alignment: int
    ) -> Space: ...


@runtime_checkable
class DeviceModules(Protocol):
    """Binaries the device runs. Absent: host functions only. ``grid`` and ``block`` count in threads' axes x, y, z."""

    def load_module(self, index: int, binary: bytes, format: str) -> object: ...
    def launch(
        self,
        module: object,
        function: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        args: Sequence[Region | int | float],
        stream: Stream | None,
    ) -> Event | None: ...


@runtime_checkable
class Recording(Protocol):
    """Work recorded once and replayed with other arguments. Absent: replayed call by call."""

    def begin_record(self, index: int, stream: Stream | None) -> None: ...
    def end_record(self, index: int, stream: Stream | None) -> object: ...
    def replay(self, recording: object, args: Mapping[int, Region], stream: Stream | None) -> Event | None: ...


@runtime_checkable
class TargetFacts(Protocol):
    """What the hardware knows about itself, for ``Target.from_device``. Absent: the kind's defaults."""

    def target_properties(self, index: int) -> Mapping[str, Any]: ...
