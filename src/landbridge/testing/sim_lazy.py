"""``sim:lazy``: a device of host memory that queues everything and guarantees no more than the contract.

Queued copies and launches run as late as legal, in a seeded random order among unordered streams. Blocks are
poisoned when allocated and when freed; a use after free, or a free before the last queued use, is an error and
stays in ``violations``. The seed is ``LANDBRIDGE_SIM_SEED`` or 0 and is part of every such error.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from landbridge.device.api import DEVICE_API_VERSION, Device, Event, Region, Space, Stream
from landbridge.device.attr import DeviceAttr
from landbridge.device.checks import (
    check_inside,
    check_request,
    host_address,
    host_reaches,
    is_copy_to_itself,
    kind_of,
    owning_device,
)
from landbridge.device.protocols import AccessMode
from landbridge.errors import (
    DeviceError,
    HostAccessError,
    HostViewError,
    InputError,
    KernelBuildError,
    OutOfMemoryError,
    UseAfterFreeError,
)
from landbridge.memory_kind import MemoryKind
from landbridge.process.locks import new_lock
from landbridge.testing.lazy_instance import POISON, LazyBlock
from landbridge.testing.lazy_queue import Task
from landbridge.testing.lazy_streams import SEED_VARIABLE as SEED_VARIABLE
from landbridge.testing.lazy_streams import LazyStreams

_CAPACITY = 1 << 26
_QUARANTINE = 64  # freed blocks that are checked for late writes


class SimLazyDeviceAPI(LazyStreams):
    """Two instances. ``global`` is hidden from the host and never pooled; ``shared`` is coherent host memory."""

    name: ClassVar[str] = "sim:lazy"
    api_version: ClassVar[int] = DEVICE_API_VERSION

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(seed)
        self._lock = new_lock()
        #: What the runtime did against the contract, in words.
        self.violations: list[str] = []
        common = {
            "coherent": True,
            "alignment": 256,
            "offset_alignment": 64,
            "size_multiple": 64,
            "max_bytes": _CAPACITY,
            "capacity": _CAPACITY,
            "allocators": ("naive", "pooled"),
        }
        self._kinds = {
            "global": MemoryKind(**(common | {"scope": "global", "host_access": "none", "coherent": False})),  # type: ignore[arg-type]
            "shared": MemoryKind(**(common | {"scope": "shared", "host_access": "read_write"})),  # type: ignore[arg-type]
        }

    def get_attr(self, index: int, attr: DeviceAttr) -> object | None:
        """Returns name and memory; None for other attributes."""
        match attr:
            case DeviceAttr.PRODUCT_NAME:
                return f"simulated device, lazy, seed {self.seed}"
            case DeviceAttr.TOTAL_MEMORY:
                return _CAPACITY
            case DeviceAttr.AVAILABLE_MEMORY if 0 <= index < self.count():
                return _CAPACITY - self._instances[index].used_bytes
        return None

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        """Returns ``global`` and ``shared``."""
        return self._kinds

    # --- memory ------------------------------------------------------------------------------------------------

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        """Allocates a poisoned block."""
        instance = self._live(index)
        kind = kind_of(self._kinds, scope, f"sim:lazy:{index}")
        check_request(nbytes, alignment, f"sim:lazy:{index}")
        with self._lock:
            if nbytes > _CAPACITY - instance.used_bytes:
                raise OutOfMemoryError(
                    f"sim:lazy:{index}: {nbytes} bytes requested, {instance.used_bytes} of {_CAPACITY} used; "
                    "free tensors"
                )
            instance.used_bytes += nbytes
        block = LazyBlock(instance, kind.scope, nbytes, max(alignment, kind.alignment))
        return Space(Device(self, index), kind.scope, block)

    def free_data_space(self, space: Space) -> None:
        """Poisons the block; it is an error while queued work uses the block, and when it was freed before."""
        block: LazyBlock = space.handle
        if block.instance.queue.lost:
            return
        if not block.alive:
            self._violation(f"{block} is freed twice")
        pending = self._pending(block, 0, block.data.nbytes, writes=True)
        with self._lock:
            block.alive = False
            block.data[:] = POISON
            block.instance.used_bytes -= block.data.nbytes
            freed = block.instance.freed
            freed.append(block)
            oldest = freed.popleft() if len(freed) > _QUARANTINE else None
        if pending:
            self._violation(f"{block} is freed before its last queued use, {pending[0].subject}")
        if oldest is not None:
            self._check_poison(oldest)

    def check_freed_blocks(self) -> None:
        """Raises UseAfterFreeError when a freed block was written."""
        for instance in self._instances:
            for block in tuple(instance.freed):
                self._check_poison(block)

    def can_copy(self, src: Space, dst: Space) -> bool:
        """Returns whether both ends are of its instances or in memory that the host reaches."""
        return all(space.device.api is self or host_reaches(space) for space in (src, dst))

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        """Queues the copy. Memory of the host is read or written when it runs, not before."""
        ends = (src, dst)
        index = owning_device(self, src.space, dst.space).index
        if stream is not None and stream.device not in (src.space.device, dst.space.device):
            raise InputError(
                f"sim:lazy: a copy from {src.space.device} to {dst.space.device} on a stream of {stream.device}"
            )
        for end in ends:
            self._check_region(end, nbytes)
        if is_copy_to_itself(self, src, dst, nbytes):
            return None
        subject = f"copy of {nbytes} bytes from {src.space.device} to {dst.space.device}"

        def run() -> None:
            ctypes.memmove(self._address(dst, subject), self._address(src, subject), nbytes)

        uses = tuple(
            (end.space.handle, end.byte_offset, end.byte_offset + nbytes, end is dst)
            for end in ends
            if end.space.device.api is self
        )
        return self._submit(index, stream, subject, run, uses=uses, keep_alive=keep_alive)

    # --- host access -------------------------------------------------------------------------------------------

    def host_pointer(self, space: Space) -> int:
        """Returns the address of a ``shared`` block; raises while work on it is pending outside
        ``begin_host_access``.
        """
        block = self._block(space)
        if block.scope != "shared":
            raise HostViewError(f"sim:lazy: the host cannot address scope {block.scope!r}; copy it to the host")
        if not block.host_accesses and (pending := self._pending(block, 0, block.data.nbytes, writes=True)):
            raise HostAccessError(
                f"sim:lazy: {pending[0].subject} is pending on {block}; wait for it, or use begin_host_access"
            )
        return block.address

    def begin_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        """Runs what the access must come after."""
        block = self._block(region.space)
        for task in self._pending(block, region.byte_offset, region.byte_offset + nbytes, writes=mode != "r"):
            task.synchronize()
        self._open(region, nbytes, mode)

    def begin_host_access_after(self, region: Region, nbytes: int, mode: AccessMode, events: Sequence[Event]) -> None:
        """Runs ``events``; another copy that is pending on these bytes is a violation."""
        for event in events:
            event.synchronize()
        block, start = self._block(region.space), region.byte_offset
        if pending := self._pending(block, start, start + nbytes, writes=mode != "r", is_known=True):
            self._violation(f"{pending[0].subject} is pending on {block}, and a barrier of its bytes does not name it")
        self._open(region, nbytes, mode)

    def end_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        """Counts the access; the memory is coherent."""
        block = self._block(region.space)
        block.host_accesses = max(0, block.host_accesses - 1)

    # --- modules -----------------------------------------------------------------------------------------------

    def module_formats(self, index: int) -> Sequence[str]:
        """Returns the one format, ``python``."""
        return ("python",)

    def load_module(self, index: int, binary: bytes, format: str, options: str = "") -> object:
        """Loads the Python module whose import path is ``binary``; its functions are the kernels. ``options`` are
        ignored.
        """
        self._live(index)
        if format != "python":
            raise InputError(f"sim:lazy loads no modules of format {format!r}; legal: python")
        try:
            return import_module(binary.decode())
        except (ImportError, ValueError) as error:
            raise KernelBuildError(f"sim:lazy: {binary[:40]!r} is the path of no Python module: {error}") from error

    def launch(
        self,
        module: object,
        function: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        args: Sequence[Region | int | float],
        stream: Stream | None,
    ) -> Event | None:
        """Queues ``function(grid, block, *args)``; a Region becomes a uint8 array to the end of its space."""
        kernel = getattr(module, function, None)
        if kernel is None:
            raise DeviceError(f"sim:lazy: the module has no function {function!r}")
        given = tuple(args)  # copied, as the caller may change the list
        regions = [arg for arg in given if isinstance(arg, Region)]
        owner = next((r.space.device for r in regions if r.space.device.api is self), None)
        index = stream.device.index if stream is not None else owner.index if owner is not None else 0
        for region in regions:
            self._check_region(region, 0)
        subject = f"launch of {function}"

        def run() -> None:
            kernel(grid, block, *(self._bytes(arg, subject) if isinstance(arg, Region) else arg for arg in given))

        uses = tuple((r.space.handle, r.byte_offset, self._block(r.space).data.nbytes, None) for r in regions)
        return self._submit(index, stream, subject, run, uses=uses)

    # --- inside ------------------------------------------------------------------------------------------------

    def _block(self, space: Space) -> LazyBlock:
        block: LazyBlock = space.handle
        block.instance.queue.check()
        if not block.alive:
            self._violation(f"{block} is used after it was freed")
        return block

    def _open(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        """Begins an access of the host, which waits for nothing."""
        region.space.handle.host_accesses += 1

    def _pending(self, block: LazyBlock, start: int, stop: int, *, writes: bool, is_known: bool = False) -> list[Task]:
        found: list[Task] = []
        for instance in self._instances:
            found += instance.queue.touching(block, start, stop, writes=writes, is_known=is_known)
        return found

    def _check_region(self, region: Region, nbytes: int) -> None:
        if region.space.device.api is not self:
            return
        check_inside(region.byte_offset, nbytes, self._block(region.space).data.nbytes, "sim:lazy")

    def _address(self, region: Region, subject: str) -> int:
        """Returns the address of ``region``, when ``subject`` runs."""
        space = region.space
        if space.device.api is self:
            if not space.handle.alive:
                self._violation(f"{subject} uses {space.handle} after it was freed")
            return int(space.handle.address) + region.byte_offset
        return host_address(region)

    def _bytes(self, region: Region, subject: str) -> np.ndarray[Any, Any]:
        self._address(region, subject)
        data: np.ndarray[Any, Any] = region.space.handle.data[region.byte_offset :]
        return data

    def _check_poison(self, block: LazyBlock) -> None:
        if not (block.data == POISON).all():
            block.data[:] = POISON
            self._violation(f"{block} was written after it was freed")

    def _violation(self, subject: str) -> None:
        text = f"sim:lazy: {subject} (seed {self.seed}; set {SEED_VARIABLE}={self.seed} to repeat)"
        self.violations.append(text)
        raise UseAfterFreeError(text)
