"""MemoryKind: the properties of the memory of one scope of a device; pure data, shared by compiler and runtime."""

from __future__ import annotations

from typing import Literal, get_args

from landbridge.errors import InputError
from landbridge.records import record

HostAccess = Literal["none", "read", "write", "read_write"]
ByteOrder = Literal["little", "big"]
HOST_ACCESSES: tuple[HostAccess, ...] = ("none", "read", "write", "read_write")
GLOBAL_SCOPE = "global"
#: The CPU's scope of page-locked memory.
PINNED_SCOPE = "global.pinned"
_SHORT: dict[str, HostAccess] = {"r": "read", "w": "write", "rw": "read_write"}
_TRUTHS = ("coherent", "cached", "resident", "pinned", "importable", "exportable", "one_tensor_per_space", "by_name")
_ALLOCATORS = (("pooled", "naive"), ("naive", "pooled"), ("pooled",), ("naive",), ("size_classes", "naive"))


def normalize_scope(scope: str) -> str:
    """Returns ``scope`` with the empty name replaced by ``"global"``."""
    return scope or GLOBAL_SCOPE


def normalize_host_access(requested: str) -> HostAccess:
    """Returns ``requested`` with its short form written out; raises InputError for an illegal value."""
    wanted = _SHORT.get(requested, requested)
    for legal in HOST_ACCESSES:
        if wanted == legal:
            return legal
    raise InputError(f"host_access {requested!r} is unknown; legal: {', '.join((*_SHORT, *HOST_ACCESSES))}")


@record(frozen=True)
class MemoryKind:
    """The properties of one scope, as granted and not as requested; sizes and alignments are in bytes.

    ``host_access``: what the host may do with the bytes themselves. ``coherent``: both sides see each other's writes
    without a barrier; ``coherence_granule`` is the unit of the barriers when not (1 when coherent). ``cached``: host
    reads go through its caches. ``resident``: the pages never leave memory. ``pinned``: they never move in it either,
    as the kernel or a driver holds them; what is pinned is resident, and what is only locked may be migrated.
    ``physically_contiguous``: what is allocated, not what is imported; None is unknown. ``alignment``: of an
    allocation; the effective one is the larger of requested and this. ``offset_alignment``: of a Tensor's first byte,
    by the device's address where one is known, else in its Storage. ``size_multiple``: sizes are rounded up to it.
    ``max_bytes``: of one allocation, ``max_binding_bytes``: of one kernel argument, ``capacity``: of the scope; None is
    no known limit. ``dma_address_bits``: width of the addresses the device can reach, None when it does not apply.
    ``max_segments``: in how many pieces by the device's addresses a tensor may lie, None is any number; none of them
    crosses a multiple of ``segment_boundary``, where the device has one. ``ndim``: 1 flat, 2 rows of a scratchpad;
    ``row_alignment`` of those rows. ``importable`` and ``exportable``: memory of others can be used in place, this
    memory by others. ``import_alignment``: of the address and the size of what is imported. ``allocators``: which of
    "pooled" and "naive" the scope allows, the preferred first, or ("size_classes", "naive") where no two tensors may
    share an allocation. ``one_tensor_per_space``: a launch takes no two arguments of one space of which it writes one,
    as APIs refuse that bind whole buffers for reading or for writing; tensors share no allocation then, and no kernel
    works in place. ``copy_granule``: the device copies multiples of so many bytes, from and to multiples of it in this
    memory; the runtime copies other bytes through the host. ``byte_order``: of the numbers that kernels read and write
    there; programs are compiled for little-endian ones alone. ``dlpack_device``: (device type, index) under which
    DLPack knows the memory, None when it cannot be exchanged. ``by_name``: taken where it is asked for by its name
    alone, never where the runtime chooses. ``host_read_bandwidth`` and ``host_write_bandwidth``: bytes a second of the
    host's loads and stores in place; ``copy_bandwidth``: of a copy between this memory and the host's own; None is
    unknown.
    """

    scope: str
    host_access: HostAccess
    coherent: bool
    cached: bool = True
    resident: bool = False
    pinned: bool = False
    physically_contiguous: bool | None = None
    alignment: int = 1
    offset_alignment: int = 1
    size_multiple: int = 1
    coherence_granule: int = 1
    max_bytes: int | None = None
    max_binding_bytes: int | None = None
    capacity: int | None = None
    dma_address_bits: int | None = None
    max_segments: int | None = None
    segment_boundary: int | None = None
    ndim: int = 1
    row_alignment: int = 1
    importable: bool = False
    exportable: bool = False
    import_alignment: int = 1
    allocators: tuple[str, ...] = ("pooled", "naive")
    one_tensor_per_space: bool = False
    copy_granule: int = 1
    byte_order: ByteOrder = "little"
    by_name: bool = False
    dlpack_device: tuple[int, int] | None = None
    host_read_bandwidth: int | None = None
    host_write_bandwidth: int | None = None
    copy_bandwidth: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "scope", normalize_scope(self.scope))
        if not isinstance(self.scope, str):
            raise self._illegal("scope", self.scope, "a name")
        for field in _TRUTHS:
            if not isinstance(getattr(self, field), bool):
                raise self._illegal(field, getattr(self, field), "True or False")
        object.__setattr__(self, "resident", self.resident or self.pinned)
        if self.one_tensor_per_space and "pooled" in self.allocators:
            object.__setattr__(self, "allocators", ("size_classes", "naive"))
        if not isinstance(self.physically_contiguous, bool | None):
            raise self._illegal("physically_contiguous", self.physically_contiguous, "True, False or None")
        if self.host_access not in HOST_ACCESSES:
            raise self._illegal("host_access", self.host_access, f"one of {', '.join(HOST_ACCESSES)}")
        for field in (
            "alignment",
            "offset_alignment",
            "coherence_granule",
            "row_alignment",
            "import_alignment",
            "copy_granule",
        ):
            value = getattr(self, field)
            if type(value) is not int or value < 1 or value & (value - 1):
                raise self._illegal(field, value, "a power of two")
        for field in ("size_multiple", "ndim"):
            value = getattr(self, field)
            if type(value) is not int or value < 1:
                raise self._illegal(field, value, "at least 1")
        for field in ("max_bytes", "max_binding_bytes", "capacity", "dma_address_bits"):
            value = getattr(self, field)
            if value is not None and (type(value) is not int or value < 0):
                raise self._illegal(field, value, "None or at least 0")
        for field in ("host_read_bandwidth", "host_write_bandwidth", "copy_bandwidth"):
            value = getattr(self, field)
            if value is not None and (type(value) is not int or value < 1):
                raise self._illegal(field, value, "None or at least 1 byte a second")
        if self.max_segments is not None and (type(self.max_segments) is not int or self.max_segments < 1):
            raise self._illegal("max_segments", self.max_segments, "None or at least 1")
        boundary = self.segment_boundary
        if boundary is not None and (type(boundary) is not int or boundary < 1 or boundary & (boundary - 1)):
            raise self._illegal("segment_boundary", boundary, "None or a power of two")
        self._check_facts_that_exclude_others()

    def _check_facts_that_exclude_others(self) -> None:
        if self.coherent and self.coherence_granule != 1:
            raise self._illegal("coherence_granule", self.coherence_granule, "1, because the kind is coherent")
        if self.byte_order not in get_args(ByteOrder):
            raise self._illegal("byte_order", self.byte_order, f"one of {', '.join(get_args(ByteOrder))}")
        if self.copy_granule > 1 and self.ndim > 1:
            raise self._illegal("copy_granule", self.copy_granule, "1, because rows are copied byte by byte")
        if self.allocators not in _ALLOCATORS:
            raise self._illegal("allocators", self.allocators, f"one of {_ALLOCATORS}")
        device = self.dlpack_device
        if device is not None and not (isinstance(device, tuple) and [type(n) for n in device] == [int, int]):
            raise self._illegal("dlpack_device", device, "None or (device type, index)")

    def _illegal(self, field: str, value: object, legal: str) -> InputError:
        return InputError(f"MemoryKind of scope {self.scope!r}: {field} is {value!r}; legal: {legal}")

    @property
    def block_granule(self) -> int:
        """Returns the bytes of the unit that two blocks of an allocator never share: the larger of alignment and
        barrier granule.
        """
        return max(64, self.alignment, self.offset_alignment, self.coherence_granule, self.copy_granule)

    def block_bytes(self, nbytes: int) -> int:
        """Returns the bytes that a block of ``nbytes`` takes of the capacity of a flat scope."""
        blocks = -(-max(nbytes, 1) // self.block_granule) * self.block_granule
        return -(-blocks // self.size_multiple) * self.size_multiple

    @property
    def host_readable(self) -> bool:
        """Returns whether the host may read the bytes in place."""
        return self.host_access in ("read", "read_write")

    @property
    def host_writable(self) -> bool:
        """Returns whether the host may write the bytes in place."""
        return self.host_access in ("write", "read_write")
