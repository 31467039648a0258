"""The optional abilities of a DeviceAPI, one Protocol each: a device that has the methods has the capability.

Ask with ``device.capability(HostMemory)``; nothing asks for a name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

from landbridge.device.api import Event, NdSpace, Region, Space, Stream
from landbridge.device.api import Events as Events
from landbridge.device.api import Streams as Streams
from landbridge.device.import_source import DmaBuf, ImportSource
from landbridge.records import record

AccessMode = Literal["r", "w", "rw"]


@runtime_checkable
class Discovery(Protocol):
    """Devices behind a driver. Absent: an instance that does not exist is simply not there."""

    def discovery(self) -> Sequence[str]:
        """What looking for instances found, a line for each thing: what is missing, and what was passed over and why.

        Empty when there is nothing to tell. Never raises.
        """


@runtime_checkable
class WorkspaceMemory(Protocol):
    """Scratch memory of kernels, of scope ``"global"``. Absent: data space serves."""

    def alloc_workspace(self, index: int, nbytes: int, stream: Stream | None) -> Space:
        """``nbytes`` bytes for work on ``stream`` (None: on any), the runtime's until ``free_workspace``.

        Begins at a multiple of the kind's ``alignment``. Raises OutOfMemoryError.
        """

    def free_workspace(self, space: Space) -> None:
        """Give ``space`` back; the runtime calls this after the last queued use."""


@runtime_checkable
class HostMemory(Protocol):
    """Memory the host can address. Absent: no host view."""

    def host_pointer(self, space: Space) -> int:
        """The address of ``space`` in this process, the same for as long as it lives."""


@runtime_checkable
class SharedMemory(Protocol):
    """Memory made for others to map too, given back by ``free_data_space``. Absent: all of it is alike."""

    def alloc_shared_space(self, index: int, nbytes: int, alignment: int, scope: str) -> Space:
        """As ``alloc_data_space``, of memory that other processes and devices can map."""


@runtime_checkable
class HostBarriers(Protocol):
    """Barriers around host access. Absent: they are no-ops, legal only for a coherent kind."""

    def begin_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        """The host sees what the device wrote to these bytes; waits for it. Mode ``w`` need not bring them."""

    def end_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        """The device sees what the host wrote to these bytes, from its next work on."""


@runtime_checkable
class MemoryImport(Protocol):
    """Memory of others, used in place; raises ZeroCopyError with the reason. ``access``: "r" or "rw"."""

    def import_memory(self, index: int, source: ImportSource, access: AccessMode) -> Space:
        """``source`` as a Space in place, the runtime's until ``release_import``; the bytes stay their owner's."""

    def release_import(self, space: Space) -> None:
        """Forget the mapping after its last queued use; the bytes stay as they are."""


@runtime_checkable
class MemoryExport(Protocol):
    """This device's memory as a file descriptor (dma-buf) that the caller closes."""

    def export_fd(self, space: Space) -> int:
        """A new file descriptor of ``space``, which the caller closes; the memory lives until both are given back."""


@runtime_checkable
class ImportSources(Protocol):
    """Memory that lies in files, by which other devices import it. Absent: by its address alone."""

    def import_source(self, space: Space) -> DmaBuf | None:
        """Where ``space`` lies in its file; None where it lies in none.

        The descriptor is the device's, and open for as long as ``space`` lives. The barriers of a dma-buf are called.
        """


@runtime_checkable
class PeerCopy(Protocol):
    """Copies whose ends lie on different devices. Absent: only copies within the device."""

    def can_copy(self, src: Space, dst: Space) -> bool:
        """Whether ``copy_data_from_to`` takes these two ends, one of them on another device."""


@runtime_checkable
class Addresses(Protocol):
    """Addresses as the device must use them (IOVA under an IOMMU)."""

    def device_address(self, region: Region) -> int:
        """What the device itself must use to reach ``region``."""


@runtime_checkable
class AcquiredScopes(Protocol):
    """Scopes that come and go, as a scratchpad that programs use one at a time. Absent: all are there as long as the
    device.

    Allocation reserves space and addresses, which stay; the bytes are there from ``acquire_scope`` to
    ``release_scope``. The runtime acquires a scope for each run that uses it, and several runs may have it at once; a
    Session that holds it acquires it once more. The device may take it away between runs: then the bytes are lost,
    acquiring it is refused or gives another number, and what was acquired is released all the same.
    """

    def acquired_scopes(self, index: int) -> Sequence[str]:
        """The scopes of instance ``index`` that have to be acquired; always the same."""

    def acquire_scope(self, index: int, scope: str) -> int:
        """Take ``scope``, once more where it is acquired already; raises ScopeBusyError naming who holds it.

        The number stays the same while everything written there is kept, released or not, and is another one whenever
        it was lost.
        """

    def release_scope(self, index: int, scope: str) -> None:
        """Give back what was acquired once; at the last time others may take the scope."""


@runtime_checkable
class NdSpaces(Protocol):
    """Scopes of more than one dimension, whose spaces are made of rows. Absent: UnsupportedError.

    ``copy_data_from_to`` takes regions of their rows (``NdSpace.row``) as it does regions of flat memory.
    """

    def alloc_data_space_nd(
        self, index: int, physical_shape: Sequence[int], dtype: str, scope: str, alignment: int
    ) -> NdSpace:
        """As ``alloc_data_space``, for ``physical_shape`` elements of ``dtype`` in a scope of that many dimensions.

        The first counts the rows. ``alignment``, a power of two, is that of each row, like the kind's. Raises
        InputError for extents the scope cannot have, OutOfMemoryError when the memory is not there.
        """


@record(frozen=True, slots=True)
class RowTable:
    """A kernel's operand in rows: where each row begins, in order."""

    rows: tuple[Region, ...]


@runtime_checkable
class DeviceModules(Protocol):
    """Binaries the device runs. Absent: host functions only. ``grid`` and ``block`` count in threads' axes x, y, z."""

    def load_module(self, index: int, binary: bytes, format: str, options: str = "") -> object:
        """``binary``, in the ``format`` its code generator named, ready to launch.

        ``options`` are for the driver's compiler, where it has one. Raises KernelBuildError with the driver's log.
        """

    def launch(
        self,
        module: object,
        function: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        args: Sequence[Region | RowTable | int | float],
        stream: Stream | None,
    ) -> Event | None:
        """Queue ``function`` of ``module`` on ``stream``; None means that it is done on return.

        An operand in rows is a RowTable, one that is an image its whole space; devices without such scopes are given
        none. ``args`` stay valid until the
        Event completes. Raises DeviceError for a function there is not.
        """


@runtime_checkable
class ModuleFormats(Protocol):
    """The formats of binaries that the device loads. Absent: it says so when it is given one."""

    def module_formats(self, index: int) -> Sequence[str]:
        """What ``load_module`` of instance ``index`` takes as ``format``: the names that code generators give."""


@runtime_checkable
class Recording(Protocol):
    """Work recorded once and replayed with other arguments. Absent: replayed call by call."""

    def begin_record(self, index: int, stream: Stream | None) -> None:
        """From now on work on ``stream`` is noted, and not done."""

    def end_record(self, index: int, stream: Stream | None) -> object:
        """What was noted since ``begin_record``."""

    def replay(self, recording: object, args: Mapping[int, Region], stream: Stream | None) -> Event | None:
        """Queue ``recording`` on ``stream``, with the regions in ``args`` bound to their positions from now on.

        Positions number the regions that the recorded work uses, those in a RowTable apart, in the order of their
        first use.
        """


@runtime_checkable
class TargetFacts(Protocol):
    """What the hardware knows about itself, for ``Target.from_device``. Absent: the kind's defaults."""

    def target_properties(self, index: int) -> Mapping[str, Any]:
        """Options of a target kind, and ``kind`` where one is meant, as ``Target`` takes them in a dict."""
