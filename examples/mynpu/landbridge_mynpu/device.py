"""mynpu: a device with memory of its own, which is not coherent, and one queue."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from tempfile import NamedTemporaryFile

from landbridge.device.api import DEVICE_API_VERSION, Device, DeviceAPI, Event, Region, Space, Stream
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
from landbridge.device.protocols import AccessMode, RowTable
from landbridge.errors import DeviceError, InputError, KernelBuildError
from landbridge.memory_kind import MemoryKind

from landbridge_mynpu.memory import Arena
from landbridge_mynpu.target import ALIGNMENT, CAPACITY, FORMAT, MEMORY
from landbridge_mynpu.worker import Worker


class MynpuDeviceAPI(DeviceAPI):
    """One instance. Copies and kernels are queued; barriers wait for the events that they name, or for all before."""

    name = "mynpu"
    api_version = DEVICE_API_VERSION

    def __init__(self) -> None:
        self._arena = Arena(CAPACITY, ALIGNMENT)
        self._worker = Worker("mynpu:0")

    def count(self) -> int:
        return 1

    def get_attr(self, index: int, attr: DeviceAttr) -> object | None:
        match attr:
            case DeviceAttr.PRODUCT_NAME:
                return "mynpu, simulated"
            case DeviceAttr.TOTAL_MEMORY:
                return CAPACITY
            case DeviceAttr.AVAILABLE_MEMORY:
                return self._arena.available
        return None

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        return {"global": MEMORY}

    # ---- memory

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        kind = kind_of(self.memory_kinds(index), scope, f"mynpu:{index}")
        check_request(nbytes, alignment, f"mynpu:{index}")
        return Space(Device(self, index), kind.scope, self._arena.allocate(nbytes, alignment))

    def free_data_space(self, space: Space) -> None:
        self._arena.free(space.handle)

    def host_pointer(self, space: Space) -> int:
        return self._arena.host_address(space.handle.start)

    def begin_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        self.begin_host_access_after(region, nbytes, mode, (self._worker.submit("a barrier", lambda: None),))

    def begin_host_access_after(self, region: Region, nbytes: int, mode: AccessMode, events: Sequence[Event]) -> None:
        start = self._start(region, nbytes)
        for event in events:
            event.synchronize()
        if mode != "w":
            self._arena.invalidate(start, nbytes)

    def end_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        if mode != "r":
            self._arena.clean(self._start(region, nbytes), nbytes)

    # ---- copies

    def can_copy(self, src: Space, dst: Space) -> bool:
        return all(space.device.api is self or host_reaches(space) for space in (src, dst))

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        owning_device(self, src.space, dst.space)
        source, target = self._address(src, nbytes), self._address(dst, nbytes)
        if is_copy_to_itself(self, src, dst, nbytes):
            return None
        subject = f"a copy of {nbytes} bytes from {src.space.device} to {dst.space.device}"
        return self._submit(subject, lambda: _move(target, source, nbytes), stream, keep_alive)

    # ---- kernels

    def module_formats(self, index: int) -> Sequence[str]:
        return (FORMAT,)

    def load_module(self, index: int, binary: bytes, format: str, options: str = "") -> object:
        if format != FORMAT:
            raise InputError(f"mynpu loads no modules of format {format!r}; legal: {FORMAT}")
        try:
            with NamedTemporaryFile(
                prefix="mynpu-", suffix=".so"
            ) as file:  # the loader maps it, and needs no name then
                file.write(binary)
                file.flush()
                return ctypes.CDLL(file.name)
        except OSError as error:
            raise KernelBuildError(f"mynpu does not load its kernels: {error}") from error

    def launch(
        self,
        module: object,
        function: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        args: Sequence[Region | RowTable | int | float],
        stream: Stream | None,
    ) -> Event | None:
        try:
            kernel = getattr(module, function)
        except AttributeError as error:
            raise DeviceError(f"the module has no kernel {function!r}; compile it again") from error
        regions = [arg for arg in args if isinstance(arg, Region)]
        if len(regions) != len(args):
            raise InputError(f"mynpu: kernel {function!r} takes flat memory alone; give no numbers and no rows")
        addresses = (ctypes.c_void_p * len(args))(*(self._address(region, 0) for region in regions))
        begin, end = ctypes.c_int64(0), ctypes.c_int64(grid[0])
        return self._submit(f"kernel {function}", lambda: kernel(addresses, begin, end), stream, None)

    # ---- inside

    def _submit(self, subject: str, work: Callable[[], object], stream: Stream | None, keep_alive: object) -> Event:
        if stream is not None:
            raise InputError("mynpu has one queue, stream None; a stream was given")
        return self._worker.submit(subject, work, keep_alive)

    def _start(self, region: Region, nbytes: int) -> int:
        """Where ``region`` begins in the arena."""
        check_inside(region.byte_offset, nbytes, region.space.handle.nbytes, "mynpu")
        return int(region.space.handle.start) + region.byte_offset

    def _address(self, region: Region, nbytes: int) -> int:
        """Where the device finds ``region``: in its arena, or in coherent memory of the host."""
        if region.space.device.api is self:
            return self._arena.device_address(self._start(region, nbytes))
        if not host_reaches(region.space):
            raise InputError(f"mynpu copies no memory of {region.space.device}; ask can_copy first")
        return host_address(region)


def _move(target: int, source: int, nbytes: int) -> None:
    ctypes.memmove(target, source, nbytes)
