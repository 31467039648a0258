"""``sim:scratch``: a device with scratchpads, flat and of rows, and textures, all in the host's memory.

Small on purpose: every scope has a capacity. Unwritten bytes are poison, and so are the guards around every block and
every row; a write outside of them is found when the block is freed, or by ``check_guards()``, and stays in
``violations``. Code compiled for the host runs on it: all but textures can be addressed by the host, row by row.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar

from landbridge.device.api import DEVICE_API_VERSION, Device, DeviceAPI, Event, NdSpace, Region, Space, Stream
from landbridge.device.attr import DeviceAttr
from landbridge.device.checks import host_address, host_reaches, is_copy_to_itself, kind_of, owning_device
from landbridge.dtypes import dtype as dtype_facts
from landbridge.errors import (
    DeviceError,
    DeviceIndexError,
    HostViewError,
    InputError,
    OutOfMemoryError,
    UseAfterFreeError,
)
from landbridge.memory_kind import MemoryKind
from landbridge.process.locks import new_lock
from landbridge.shapes.physical import nd_bytes, row_bytes
from landbridge.testing.sim_scratch_memory import Guarded, Handle, flat, pitched, table

#: Dtypes a lane of a texture can have.
TEXTURE_DTYPES = ("uint8", "float16", "float32")
LANES = 4

_VISIBLE: dict[str, Any] = {"host_access": "read_write", "coherent": True}
_KINDS = {
    kind.scope: kind
    for kind in (
        MemoryKind("global", alignment=64, capacity=1 << 26, max_bytes=1 << 26, **_VISIBLE),
        MemoryKind(
            "global.scratch", alignment=128, offset_alignment=128, size_multiple=128, capacity=1 << 16, **_VISIBLE
        ),
        MemoryKind(
            "global.vtcm", ndim=2, alignment=128, row_alignment=128, capacity=1 << 18, allocators=("naive",), **_VISIBLE
        ),
        MemoryKind(
            "global.pitched",
            ndim=2,
            alignment=64,
            row_alignment=256,
            capacity=1 << 18,
            allocators=("naive",),
            **_VISIBLE,
        ),
        MemoryKind(
            "global.texture",
            host_access="none",
            coherent=False,
            ndim=3,
            row_alignment=64,
            capacity=1 << 20,
            allocators=("pooled", "naive"),
        ),
    )
}


class SimScratchDeviceAPI(DeviceAPI):
    """One instance, whose copies are done on return.

    ``global``: flat. ``global.scratch``: a flat scratchpad. ``global.vtcm``: two dimensions, each allocation a table of
    rows that lie anywhere, in an order of ``seed``. ``global.pitched``: two dimensions, rows a pitch apart.
    ``global.texture``: images of ``height`` rows x ``width`` x 4 lanes, which the host cannot address.
    """

    name: ClassVar[str] = "sim:scratch"
    api_version: ClassVar[int] = DEVICE_API_VERSION

    def __init__(self, seed: int = 0) -> None:
        self._random = Random(seed)
        self._lock = new_lock()
        self._used = dict.fromkeys(_KINDS, 0)
        self._live: set[Handle] = set()
        #: What was done against the contract, in words.
        self.violations: list[str] = []

    def count(self) -> int:
        """Returns 1, always."""
        return 1

    def get_attr(self, index: int, attr: DeviceAttr) -> object | None:
        """Returns name and memory; None for other attributes."""
        match attr:
            case DeviceAttr.PRODUCT_NAME:
                return "simulated device with scratchpads"
            case DeviceAttr.TOTAL_MEMORY:
                return _KINDS["global"].capacity
            case DeviceAttr.AVAILABLE_MEMORY:
                return (_KINDS["global"].capacity or 0) - self.used_bytes("global")
        return None

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        """Returns the kinds of the five scopes."""
        return _KINDS

    def target_properties(self, index: int) -> Mapping[str, Any]:
        """Returns the properties of a target whose kernels run on the host."""
        return {"kind": "llvm"}

    def used_bytes(self, scope: str) -> int:
        """Returns how many bytes of the capacity of ``scope`` are allocated now."""
        return self._used[scope]

    # --- allocation --------------------------------------------------------------------------------------------

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        """Allocates a poisoned block of a flat scope."""
        kind = self._kind(index, scope)
        if kind.ndim != 1:
            raise InputError(
                f"sim:scratch: {nbytes} bytes of scope {kind.scope!r}, whose spaces have {kind.ndim} dimensions; "
                "legal: alloc_data_space_nd"
            )
        if nbytes < 0 or alignment < 1 or alignment & (alignment - 1):
            raise InputError(
                f"sim:scratch: {nbytes} bytes aligned to {alignment}; legal: at least 0 bytes, a power of two"
            )
        self._charge(kind, nbytes, f"{nbytes} bytes")
        handle = flat(kind.scope, nbytes, max(alignment, kind.alignment))
        self._live.add(handle)
        return Space(Device(self, 0), kind.scope, handle)

    def alloc_data_space_nd(
        self, index: int, physical_shape: Sequence[int], dtype: str, scope: str, alignment: int
    ) -> NdSpace:
        """Allocates poisoned rows: a table of them, rows of one pitch, or the lines of an image."""
        kind = self._kind(index, scope)
        shape = tuple(physical_shape)
        if len(shape) != kind.ndim or kind.ndim == 1 or min(shape, default=0) < 0:
            raise InputError(
                f"sim:scratch: a space of {shape} in scope {kind.scope!r}; legal: {kind.ndim} extents of at least 0"
                + (", by alloc_data_space" if kind.ndim == 1 else "")
            )
        if kind.scope == "global.texture" and (shape[-1] != LANES or dtype not in TEXTURE_DTYPES):
            raise InputError(
                f"sim:scratch: a texture of {dtype}{list(shape)}; legal: height, width and {LANES} lanes of "
                f"{', '.join(TEXTURE_DTYPES)}"
            )
        usable, charged = row_bytes(shape, dtype), nd_bytes(kind, shape, dtype)
        self._charge(kind, charged, f"{dtype}{list(shape)}, {charged} bytes in rows,")
        effective = max(alignment, kind.alignment, kind.row_alignment)
        device = Device(self, 0)
        if kind.scope == "global.pitched":
            pitch = max(-(-usable // kind.row_alignment) * kind.row_alignment, dtype_facts(dtype).itemsize)
            handle = pitched(kind.scope, shape[0], usable, pitch, effective)
            handle.charged = charged
            space = NdSpace(device, kind.scope, handle, shape, usable, row_pitch=pitch)
        else:
            handle = table(kind.scope, shape[0], usable, charged, effective, self._random)
            space = NdSpace(device, kind.scope, handle, shape, usable, rows=handle.rows)
        self._live.add(handle)
        return space

    def free_data_space(self, space: Space) -> None:
        """Frees the block or all rows; it is an error when it was freed before, or its guards were written."""
        handle: Handle = space.handle
        if handle.is_freed or handle.table is not None:
            self._violation(UseAfterFreeError, f"{handle} is freed {'by itself' if handle.table else 'twice'}")
        with self._lock:
            handle.freed = True
            self._live.discard(handle)
            self._used[handle.scope] -= handle.charged
        self._check(handle)

    def check_guards(self) -> None:
        """Raises DeviceError when a byte outside of a live block or row was written."""
        for handle in tuple(self._live):
            self._check(handle)

    # --- access ------------------------------------------------------------------------------------------------

    def can_copy(self, src: Space, dst: Space) -> bool:
        """Returns whether both ends are of its scopes or in memory that the host reaches."""
        return all(end.device.api is self or host_reaches(end) for end in (src, dst))

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        """Copies at once; each end lies in one block or one row."""
        if stream is not None:
            raise InputError(f"sim:scratch has one in-order stream, not {stream}; give None")
        owning_device(self, src.space, dst.space)
        if is_copy_to_itself(self, src, dst, nbytes):
            return None
        ctypes.memmove(self._address(dst, nbytes), self._address(src, nbytes), nbytes)
        return None

    def host_pointer(self, space: Space) -> int:
        """Returns the address of a block, or of one row of a table."""
        block = self._block(space)
        if space.handle.scope == "global.texture":
            raise HostViewError("sim:scratch: the host cannot address textures; copy them to the host")
        return block.address

    # --- inside ------------------------------------------------------------------------------------------------

    def _kind(self, index: int, scope: str) -> MemoryKind:
        if index != 0:
            raise DeviceIndexError(f"sim:scratch:{index} does not exist; legal indices: 0")
        return kind_of(self.memory_kinds(index), scope, f"sim:scratch:{index}")

    def _charge(self, kind: MemoryKind, nbytes: int, requested: str) -> None:
        with self._lock:
            capacity, used = kind.capacity or 0, self._used[kind.scope]
            if nbytes > capacity - used:
                raise OutOfMemoryError(
                    f"sim:scratch: {requested} asked of scope {kind.scope!r}, {used} of {capacity} used; free tensors"
                )
            self._used[kind.scope] += nbytes

    def _block(self, space: Space) -> Guarded:
        handle: Handle = space.handle
        if handle.is_freed:
            self._violation(UseAfterFreeError, f"{handle} is used after it was freed")
        if handle.block is None:
            raise HostViewError(f"sim:scratch: {handle} have no address together; ask for that of each row")
        return handle.block

    def _address(self, region: Region, nbytes: int) -> int:
        space = region.space
        if space.device.api is self:
            if isinstance(space, NdSpace) and space.rows is not None:
                raise InputError(f"sim:scratch: {space.handle} are copied one by one; give a region of a row")
            block = self._block(space)
            if not block.holds(region.byte_offset, nbytes):
                raise InputError(
                    f"sim:scratch: {nbytes} bytes from {region.byte_offset} do not lie in {space.handle}, whose rows "
                    f"have {block.row_bytes} bytes"
                )
            return block.address + region.byte_offset
        return host_address(region)

    def _check(self, handle: Handle) -> None:
        if any(block.damaged() for block in handle.blocks()):
            self._violation(DeviceError, f"bytes outside of {handle} were written")

    def _violation(self, error: type[Exception], subject: str) -> None:
        self.violations.append(f"sim:scratch: {subject}")
        raise error(self.violations[-1])
