"""WasmDeviceAPI: a WebAssembly instance as a device."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

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
from landbridge.device.protocols import RowTable
from landbridge.errors import DeviceError, DeviceIndexError, InputError, UseAfterFreeError
from landbridge.executable.wasm_binary import WASM_FORMAT
from landbridge.memory_kind import MemoryKind
from landbridge.process.locks import new_lock
from landbridge.records import record
from landbridge.targets.wasm import ADDRESS_SPACE_BYTES, ALIGNMENT, linear_memory

if TYPE_CHECKING:
    from landbridge.devices.wasm.engine import LinearMemory

_WAY_OUT = "wasmtime is not installed: pip install 'landbridge[wasm]'"


@record(eq=False)
class _Block:
    """``nbytes`` bytes at ``address`` of the linear memory."""

    address: int
    nbytes: int
    is_freed: bool = False


class WasmDeviceAPI(DeviceAPI):
    """One instance with one linear memory. Launches and copies are done on return; the host uses the memory in place.

    There is no instance where the package ``wasmtime`` is not installed.
    """

    name: ClassVar[str] = "wasm"
    api_version: ClassVar[int] = DEVICE_API_VERSION

    def __init__(self) -> None:
        self._lock = new_lock()
        self._created: LinearMemory | None = None
        self._kinds = {kind.scope: kind for kind in linear_memory({})}

    def count(self) -> int:
        """Returns 1, or 0 without the package ``wasmtime``."""
        return 1 if find_spec("wasmtime") else 0

    def discovery(self) -> Sequence[str]:
        """Returns a line that says what to install, where it is missing."""
        return () if self.count() else (_WAY_OUT,)

    def get_attr(self, index: int, attr: DeviceAttr) -> object | None:
        """Returns names and bytes of memory; None for other attributes."""
        match attr:
            case DeviceAttr.PRODUCT_NAME:
                return "WebAssembly"
            case DeviceAttr.VENDOR:
                return "Wasmtime"
            case DeviceAttr.DRIVER_VERSION:
                return version("wasmtime")
            case DeviceAttr.COMPUTE_UNITS:
                return 1
            case DeviceAttr.TOTAL_MEMORY:
                return ADDRESS_SPACE_BYTES
            case DeviceAttr.AVAILABLE_MEMORY:
                return self._memory(index).free_bytes
        return None

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        """Returns the kind of the linear memory, scope ``"global"``."""
        return self._kinds

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        """Allocates bytes of the linear memory, which grows by pages of 64 KiB and never shrinks."""
        kind = kind_of(self._kinds, scope, f"wasm:{index}")
        check_request(nbytes, alignment, f"wasm:{index}")
        address = self._memory(index).take(nbytes, max(alignment, ALIGNMENT))
        return Space(Device(self, index), kind.scope, _Block(address, nbytes))

    def free_data_space(self, space: Space) -> None:
        """Gives the bytes back; raises UseAfterFreeError where that was done before."""
        block = self._block(space)
        block.is_freed = True
        self._memory(space.device.index).give_back(block.address)

    def can_copy(self, src: Space, dst: Space) -> bool:
        """Returns whether both ends are of the linear memory or in memory that the host reaches."""
        return all(end.device.api is self or host_reaches(end) for end in (src, dst))

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        """Copies now."""
        _check_queue(stream)
        owning_device(self, src.space, dst.space)
        if not is_copy_to_itself(self, src, dst, nbytes):
            ctypes.memmove(self._host_address(dst, nbytes), self._host_address(src, nbytes), nbytes)
        return None

    def host_pointer(self, space: Space) -> int:
        """Returns the address of ``space`` in this process."""
        return self._memory(space.device.index).host_address(self._block(space).address)

    def device_address(self, region: Region) -> int:
        """Returns the address of ``region`` in the linear memory."""
        return self._block(region.space).address + region.byte_offset

    def module_formats(self, index: int) -> Sequence[str]:
        """Returns ``wasm``."""
        return (WASM_FORMAT,)

    def load_module(self, index: int, binary: bytes, format: str, options: str = "") -> object:
        """Compiles a module for this processor; raises KernelBuildError with Wasmtime's message."""
        if format != WASM_FORMAT:
            raise InputError(f"wasm:{index} loads {WASM_FORMAT!r}, not {format!r}; compile for target 'wasm'")
        return self._memory(index).load(binary)

    def launch(
        self,
        module: object,
        function: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        args: Sequence[Region | RowTable | int | float],
        stream: Stream | None,
    ) -> Event | None:
        """Runs ``function`` on the calling thread, for all ``grid[0]`` tasks."""
        from landbridge.devices.wasm.engine import LinkedKernels

        _check_queue(stream)
        if not isinstance(module, LinkedKernels):
            raise InputError(f"wasm launches kernels of its own modules, not of {module!r}")
        found = module.functions.get(function)
        if found is None:
            raise DeviceError(f"wasm: the module has no {function!r}; it has: {', '.join(module.functions)}")
        addresses = [self.device_address(arg) for arg in args if isinstance(arg, Region)]
        if len(addresses) != len(args):
            raise InputError(f"wasm: {function!r} takes flat memory alone")
        self._memory(0).run(found, addresses, grid[0])
        return None

    def target_properties(self, index: int) -> Mapping[str, Any]:
        """Returns nothing: one target fits all instances."""
        return {}

    def _memory(self, index: int) -> LinearMemory:
        if index != 0 or not self.count():
            raise DeviceIndexError(f"there is no wasm:{index}: {'legal: 0' if self.count() else _WAY_OUT}")
        with self._lock:
            if self._created is None:
                from landbridge.devices.wasm.engine import LinearMemory

                self._created = LinearMemory()
            return self._created

    def _block(self, space: Space) -> _Block:
        block = space.handle
        if not isinstance(block, _Block):
            raise InputError(f"wasm: {space.handle!r} is no memory of this device")
        if block.is_freed:
            raise UseAfterFreeError(f"wasm: {block.nbytes} bytes at {block.address:#x} were freed")
        return block

    def _host_address(self, region: Region, nbytes: int) -> int:
        if region.space.device.api is not self:
            return host_address(region)
        block = self._block(region.space)
        check_inside(region.byte_offset, nbytes, block.nbytes, "wasm")
        return self.host_pointer(region.space) + region.byte_offset


def _check_queue(stream: Stream | None) -> None:
    if stream is not None:
        raise InputError(f"wasm has one queue, not {stream}; give None")
