"""The memory type of each scope, and its properties: pure functions of the driver's tables.

Scopes are ``global``, the memory the device works in, and where the host cannot use that well, ``host``, the host's
memory that the device can access, and ``host.cached``, the same with fast reads and barriers (Vulkan 1.3 specification,
section 11.2.1 "Device Memory Properties").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from landbridge.devices.vulkan import flags
from landbridge.memory_kind import GLOBAL_SCOPE, MemoryKind
from landbridge.records import record
from landbridge.targets.images import TEXTURE_SCOPE
from landbridge.targets.vulkan import HOST_CACHED_SCOPE, HOST_SCOPE

_VISIBLE, _COHERENT, _CACHED = flags.MEMORY_HOST_VISIBLE, flags.MEMORY_HOST_COHERENT, flags.MEMORY_HOST_CACHED
_SPECIAL = ~(flags.MEMORY_DEVICE_LOCAL | _VISIBLE | _COHERENT | _CACHED)

#: A window onto device memory that is smaller than this part of its heap is not used for tensors.
_WHOLE_HEAP = 0.9


@record(frozen=True)
class MemoryType:
    """Memory type ``index`` of a driver: its property flags, and the heap it is in with its size in bytes."""

    index: int
    properties: int
    heap: int
    heap_bytes: int
    heap_is_local: bool

    def has(self, wanted: int) -> bool:
        """Returns whether it has all properties of ``wanted``."""
        return self.properties & wanted == wanted


@record(frozen=True)
class MemoryLimits:
    """The limits of allocations and bindings, in bytes; ``import_alignment`` None: host memory cannot be imported.

    ``exportable``: memory that was made to be shared can be exported.
    """

    max_allocation: int
    max_binding: int
    binding_alignment: int
    map_alignment: int
    atom: int
    import_alignment: int | None
    exportable: bool = False


def scopes(types: Iterable[MemoryType]) -> dict[str, MemoryType]:
    """Returns the memory type of each scope; ``global`` is always one of them.

    The host sees ``global`` where the driver shows it the largest heap of the device whole.
    """
    known = [t for t in types if not t.properties & _SPECIAL]
    local = [t for t in known if t.has(flags.MEMORY_DEVICE_LOCAL)] or known
    most = max(t.heap_bytes for t in local)
    large = [t for t in local if t.heap_bytes >= _WHOLE_HEAP * most]
    found = {GLOBAL_SCOPE: max(large, key=_worth_to_the_host)}
    outside = [t for t in known if t.has(_VISIBLE) and t.heap != found[GLOBAL_SCOPE].heap]
    others = [t for t in known if t.has(_VISIBLE) and t != found[GLOBAL_SCOPE]]
    if not found[GLOBAL_SCOPE].has(_VISIBLE | _COHERENT):
        coherent = [t for t in (outside or others) if t.has(_COHERENT)] or [t for t in others if t.has(_COHERENT)]
        if coherent:
            found[HOST_SCOPE] = max(coherent, key=_worth_to_the_host)
    if not any(t.has(_VISIBLE | _CACHED) for t in found.values()):
        cached = [t for t in others if t.has(_CACHED)]
        if cached:
            found[HOST_CACHED_SCOPE] = max(cached, key=_worth_to_the_host)
    return found


def memory_kinds(
    found: Mapping[str, MemoryType], limits: MemoryLimits, dlpack: int, index: int
) -> dict[str, MemoryKind]:
    """Returns the MemoryKind of each scope of device ``index``, whose DLPack type is ``dlpack``.

    Capacities are heap sizes. Only what the host sees can be imported. Kernels begin at any element: push constants
    make up for the alignment of bindings.
    """
    return {scope: _kind(scope, memory, limits, (dlpack, index)) for scope, memory in found.items()}


def texture_kind(device_memory: MemoryKind) -> MemoryKind:
    """Returns the MemoryKind of images, of three dimensions: rows, pixels of a row, lanes of a pixel. The driver
    chooses their layout, so the host cannot access them.
    """
    return replace(
        device_memory,
        scope=TEXTURE_SCOPE,
        host_access="none",
        coherent=False,
        coherence_granule=1,
        alignment=1,
        size_multiple=1,
        max_binding_bytes=None,
        importable=False,
        exportable=False,
        import_alignment=1,
        ndim=3,
        allocators=("naive",),
    )


def with_properties_hidden(types: Iterable[MemoryType], *, coherent: bool, unified: bool) -> list[MemoryType]:
    """Returns ``types`` as those of a device with less: without ``coherent`` no type is coherent, without ``unified``
    host and device share none. So code for such devices can run on any.

    Every driver works correctly when used so. Without ``unified``, each type that both see appears as two: the
    device's, and after it the host's.
    """
    poorer: list[MemoryType] = []
    for t in types:
        hidden = 0 if coherent else _COHERENT
        shared = t.has(flags.MEMORY_DEVICE_LOCAL | _VISIBLE)
        if unified or not shared:
            poorer.append(MemoryType(t.index, t.properties & ~hidden, t.heap, t.heap_bytes, t.heap_is_local))
            continue
        poorer.append(MemoryType(t.index, flags.MEMORY_DEVICE_LOCAL, t.heap, t.heap_bytes, t.heap_is_local))
        host = t.properties & ~hidden & ~flags.MEMORY_DEVICE_LOCAL
        poorer.append(MemoryType(t.index, host, t.heap, t.heap_bytes, t.heap_is_local))
    return poorer


def _worth_to_the_host(memory: MemoryType) -> tuple[bool, bool, bool, int, int]:
    """Returns the sort key of a type by its use to the host; a better type has a greater key.

    Visible types are best, of those coherent ones, then cached ones, then those of larger heaps, then those that the
    driver lists first.
    """
    seen = memory.has(_VISIBLE)
    fast = memory.has(_CACHED)
    return seen, seen and memory.has(_COHERENT), seen and fast, memory.heap_bytes, -memory.index


def _kind(scope: str, memory: MemoryType, limits: MemoryLimits, dlpack: tuple[int, int]) -> MemoryKind:
    seen = memory.has(_VISIBLE)
    coherent = seen and memory.has(_COHERENT)
    alignment = max(limits.binding_alignment, limits.map_alignment, 1 if coherent or not seen else limits.atom)
    return MemoryKind(
        scope=scope,
        host_access="read_write" if seen else "none",
        coherent=coherent,
        cached=memory.has(_CACHED) or not seen,
        pinned=True,
        alignment=alignment,
        size_multiple=1 if coherent or not seen else limits.atom,
        coherence_granule=1 if coherent else limits.atom,
        max_bytes=min(limits.max_allocation, memory.heap_bytes),
        max_binding_bytes=limits.max_binding,
        capacity=memory.heap_bytes,
        importable=seen and limits.import_alignment is not None,
        exportable=limits.exportable,
        import_alignment=(limits.import_alignment or 1) if seen else 1,
        dlpack_device=dlpack,
    )
