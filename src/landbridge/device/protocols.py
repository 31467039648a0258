"""The optional abilities of a DeviceAPI, one Protocol each: a device that has the methods has the ability.

Code asks with ``device.capability(HostMemory)``, never by a device's name.
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
    """The ability to report devices behind a driver that were not found. Without it, such an instance just does not
    exist.
    """

    def discovery(self) -> Sequence[str]:
        """Returns the findings of the search for instances, one line each: what is missing or passed over, and why.

        The result is empty when there is nothing to report. The method must not raise.
        """


@runtime_checkable
class WorkspaceMemory(Protocol):
    """The ability to allocate scratch memory of kernels, in scope ``"global"``. Without it, data spaces are used."""

    def alloc_workspace(self, index: int, nbytes: int, stream: Stream | None) -> Space:
        """Returns ``nbytes`` bytes for work on ``stream`` (None: on any), which the runtime owns until
        ``free_workspace``.

        They begin at a multiple of the kind's ``alignment``. Raises OutOfMemoryError.
        """

    def free_workspace(self, space: Space) -> None:
        """Free ``space``; the runtime calls this after the last queued use."""


@runtime_checkable
class HostMemory(Protocol):
    """The ability to give the host addresses of memory. Without it, there is no host view."""

    def host_pointer(self, space: Space) -> int:
        """Returns the address of ``space`` in this process, which stays the same for as long as it lives."""


@runtime_checkable
class SharedMemory(Protocol):
    """The ability to allocate memory that others can map too, freed by ``free_data_space``. Without it, all memory is
    the same.
    """

    def alloc_shared_space(self, index: int, nbytes: int, alignment: int, scope: str) -> Space:
        """Allocate as ``alloc_data_space`` does, memory that other processes and devices can map."""


@runtime_checkable
class HostBarriers(Protocol):
    """The ability to call barriers around host access. Without it they are no-ops, which only a coherent kind
    allows.
    """

    def begin_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        """Make what the device wrote to these bytes visible to the host, after waiting for it; mode ``w`` need not
        bring them.
        """

    def end_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        """Make what the host wrote to these bytes visible to the device's next work."""


@runtime_checkable
class EventBarriers(Protocol):
    """The ability to wait in a barrier for named events alone. Without it, ``begin_host_access`` is called, which may
    wait for whatever is queued.
    """

    def begin_host_access_after(self, region: Region, nbytes: int, mode: AccessMode, events: Sequence[Event]) -> None:
        """As ``begin_host_access``, after waiting for ``events`` and for no other work.

        ``events`` are all pending work on these bytes that the access must follow; other bytes of the space may be in
        use. The runtime calls this inside of runs, whose work on the bytes it has waited for, and names none.
        """


@runtime_checkable
class MemoryImport(Protocol):
    """The ability to use memory of others in place; refuses by ZeroCopyError with the reason. ``access``: "r" or
    "rw".
    """

    def import_memory(self, index: int, source: ImportSource, access: AccessMode) -> Space:
        """Returns ``source`` as a Space in place, which the runtime has until ``release_import``; the owner keeps the
        bytes.
        """

    def release_import(self, space: Space) -> None:
        """Release the import after its last queued use; the bytes stay as they are."""


@runtime_checkable
class MemoryExport(Protocol):
    """The ability to export this device's memory as a file descriptor (dma-buf)."""

    def export_fd(self, space: Space) -> int:
        """Returns a new descriptor of ``space``, which the caller closes; the memory lives until both are released."""


@runtime_checkable
class ImportSources(Protocol):
    """The ability to name the file that memory lies in, for other devices to import. Without it, only the address is
    used.
    """

    def import_source(self, space: Space) -> DmaBuf | None:
        """Returns the range of a file where ``space`` lies; None where it lies in none.

        The device owns the descriptor, which is open for as long as ``space`` lives. The barriers of a dma-buf are
        called.
        """


@runtime_checkable
class PeerCopy(Protocol):
    """The ability to copy between different devices. Without it, copies stay within the device."""

    def can_copy(self, src: Space, dst: Space) -> bool:
        """Returns whether ``copy_data_from_to`` accepts these two ends, one of them on another device."""


@runtime_checkable
class Addresses(Protocol):
    """The ability to give the addresses that the device itself uses (IOVA under an IOMMU)."""

    def device_address(self, region: Region) -> int:
        """Returns the address that the device itself uses for ``region``."""


@runtime_checkable
class AcquiredScopes(Protocol):
    """The ability to have scopes that runs acquire and release, as a scratchpad that one program at a time uses.

    Allocation reserves space and addresses, which stay; the bytes exist from ``acquire_scope`` to ``release_scope``.
    The runtime acquires a scope for each run that uses it, and several runs may have it at once; a Session that holds
    it acquires it once more. The device may take it away between runs: then the bytes are lost, and acquiring it is
    refused or returns another number; what was acquired is released all the same.
    """

    def acquired_scopes(self, index: int) -> Sequence[str]:
        """Returns the scopes of instance ``index`` that must be acquired, always the same ones."""

    def acquire_scope(self, index: int, scope: str) -> int:
        """Acquire ``scope``, once more if it is acquired already; returns a number. Raises ScopeBusyError that names
        its holder.

        The number stays the same as long as everything written there is kept, released or not, and changes whenever it
        was lost.
        """

    def release_scope(self, index: int, scope: str) -> None:
        """Release ``scope`` once; after the last release others may acquire it."""


@runtime_checkable
class NdSpaces(Protocol):
    """The ability to have scopes of more than one dimension, whose spaces are made of rows. Without it:
    UnsupportedError.

    ``copy_data_from_to`` takes regions of their rows (``NdSpace.row``) as it does regions of flat memory.
    """

    def alloc_data_space_nd(
        self, index: int, physical_shape: Sequence[int], dtype: str, scope: str, alignment: int
    ) -> NdSpace:
        """Allocate ``physical_shape`` elements of ``dtype`` in a scope of that many dimensions; else as
        ``alloc_data_space``.

        The first dimension counts the rows. ``alignment``, a power of two, is that of each row, as the kind's is.
        Raises InputError for extents the scope cannot have, OutOfMemoryError when the memory is not there.
        """


@record(frozen=True, slots=True)
class RowTable:
    """A kernel's operand in rows: the Region where each row begins, in order."""

    rows: tuple[Region, ...]


@runtime_checkable
class DeviceModules(Protocol):
    """The ability to load and launch kernels. Without it, only host functions run. ``grid`` and ``block`` are (x, y,
    z).
    """

    def load_module(self, index: int, binary: bytes, format: str, options: str = "") -> object:
        """Returns ``binary``, in the ``format`` that its code generator named, loaded and ready to launch.

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
        """Queue ``function`` of ``module`` on ``stream``; returns None when it is done on return.

        An operand in rows is a RowTable, an image operand is its whole space; devices without such scopes get neither.
        ``args`` stay valid until the Event completes. Raises DeviceError for a function that does not exist.
        """


@runtime_checkable
class ModuleFormats(Protocol):
    """The ability to list the formats of binaries that the device loads. Without it, ``load_module`` refuses what it
    cannot load.
    """

    def module_formats(self, index: int) -> Sequence[str]:
        """Returns the formats that ``load_module`` of instance ``index`` accepts, by the names that code generators
        use.
        """


@runtime_checkable
class Recording(Protocol):
    """The ability to record work once and replay it with other arguments. Without it, each call is made again."""

    def begin_record(self, index: int, stream: Stream | None) -> None:
        """Start to record work on ``stream``, which is not done meanwhile."""

    def end_record(self, index: int, stream: Stream | None) -> object:
        """Returns the work recorded since ``begin_record``."""

    def replay(self, recording: object, args: Mapping[int, Region], stream: Stream | None) -> Event | None:
        """Queue ``recording`` on ``stream``, after binding the regions in ``args`` to their positions for good.

        Positions number the regions that the recorded work uses, except those in a RowTable, in the order of
        their first use.
        """


@runtime_checkable
class ExternalFences(Protocol):
    """The ability to wait for fences of others in a queue, and to make fences of its own: files that poll as readable
    once they are signalled (sync files, eventfds). Without it, the host waits.
    """

    def wait_fence(self, index: int, stream: Stream | None, fence: int) -> None:
        """Order work queued on ``stream`` from now on after the fence of descriptor ``fence``; returns at once.

        The descriptor stays the caller's, who may close it when this returns. A fence that fails is an error of the
        work behind it. Raises UnsupportedError for a file that the device cannot wait for: the host waits then.
        """

    def signal_fence(self, index: int, stream: Stream | None) -> int:
        """Returns a new descriptor, the caller's, that polls as readable once all work queued on ``stream`` so far is
        done, or has failed.
        """


@runtime_checkable
class TargetFacts(Protocol):
    """The ability to describe the hardware for ``Target.from_device``. Without it, the target kind's defaults
    are used.
    """

    def target_properties(self, index: int) -> Mapping[str, Any]:
        """Returns options of a target kind, as ``Target`` takes them in a dict, with ``kind`` where one is meant."""
