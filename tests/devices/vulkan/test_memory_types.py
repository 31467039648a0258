"""Scopes from the memory tables of drivers, as https://vulkan.gpuinfo.org lists them; sizes are rounded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from landbridge.devices.vulkan.memory_types import (
    MemoryLimits,
    MemoryType,
    memory_kinds,
    scopes,
    texture_kind,
    with_properties_hidden,
)

LOCAL, VISIBLE, COHERENT, CACHED, LAZY = 1, 2, 4, 8, 16
GIB = 1 << 30

#: (flags, heap) of each type, then (bytes, whether device-local) of each heap.
LAVAPIPE = ([(LOCAL | VISIBLE | COHERENT | CACHED, 0)], [(2 * GIB, True)])
INTEL_UHD = (
    [(LOCAL, 0), (LOCAL | VISIBLE | COHERENT, 0), (LOCAL | VISIBLE | COHERENT | CACHED, 0)],
    [(12 * GIB, True)],
)
NVIDIA_SMALL_BAR = (
    [(0, 1), (LOCAL, 0), (VISIBLE | COHERENT, 1), (VISIBLE | COHERENT | CACHED, 1), (LOCAL | VISIBLE | COHERENT, 2)],
    [(8 * GIB, True), (16 * GIB, False), (GIB // 4, True)],
)
AMD_RESIZABLE_BAR = (
    [
        (LOCAL, 0),
        (LOCAL | VISIBLE | COHERENT, 0),
        (VISIBLE | COHERENT, 1),
        (VISIBLE | COHERENT | CACHED, 1),
        (LOCAL | VISIBLE | COHERENT | 64 | 128, 0),
    ],
    [(16 * GIB, True), (16 * GIB, False)],
)
MALI = ([(LOCAL | VISIBLE | COHERENT, 0), (LOCAL | VISIBLE | CACHED, 0), (LOCAL | LAZY, 0)], [(4 * GIB, True)])
ADRENO_NOT_COHERENT = ([(LOCAL, 0), (LOCAL | VISIBLE | CACHED, 0)], [(4 * GIB, True)])

LIMITS = MemoryLimits(
    max_allocation=2 * GIB,
    max_binding=GIB // 8,
    binding_alignment=16,
    map_alignment=64,
    atom=128,
    import_alignment=4096,
)


def types_of(table: tuple[list[tuple[int, int]], list[tuple[int, bool]]]) -> list[MemoryType]:
    types, heaps = table
    return [MemoryType(i, flags, heap, *heaps[heap]) for i, (flags, heap) in enumerate(types)]


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        (LAVAPIPE, {"global": 0}),
        (INTEL_UHD, {"global": 2}),
        (NVIDIA_SMALL_BAR, {"global": 1, "host": 3}),
        (AMD_RESIZABLE_BAR, {"global": 1, "host.cached": 3}),
        (MALI, {"global": 0, "host.cached": 1}),
        (ADRENO_NOT_COHERENT, {"global": 1}),
    ],
)
def test_scopes(table: tuple[list[tuple[int, int]], list[tuple[int, bool]]], wanted: dict[str, int]) -> None:
    assert {scope: memory.index for scope, memory in scopes(types_of(table)).items()} == wanted


def test_kinds_say_what_the_types_do() -> None:
    kinds = memory_kinds(scopes(types_of(NVIDIA_SMALL_BAR)), LIMITS, 7, 3)
    hidden, host = kinds["global"], kinds["host"]
    assert (hidden.host_access, hidden.coherent, hidden.importable, hidden.capacity) == ("none", False, False, 8 * GIB)
    assert (host.host_access, host.coherent, host.cached, host.importable) == ("read_write", True, True, True)
    assert (host.alignment, host.offset_alignment, host.import_alignment) == (64, 1, 4096)
    assert (host.max_bytes, host.max_binding_bytes, host.dlpack_device) == (2 * GIB, GIB // 8, (7, 3))


def test_kinds_that_are_not_coherent_have_granules() -> None:
    kind = memory_kinds(scopes(types_of(ADRENO_NOT_COHERENT)), LIMITS, 7, 0)["global"]
    assert (kind.host_access, kind.coherent) == ("read_write", False)
    assert (kind.coherence_granule, kind.size_multiple, kind.alignment) == (128, 128, 128)


def test_without_the_extension_nothing_is_importable() -> None:
    kinds = memory_kinds(scopes(types_of(LAVAPIPE)), replace(LIMITS, import_alignment=None), 7, 0)
    assert (kinds["global"].importable, kinds["global"].import_alignment) == (False, 1)


def test_what_drivers_with_dma_bufs_export() -> None:
    kinds = memory_kinds(scopes(types_of(NVIDIA_SMALL_BAR)), replace(LIMITS, exportable=True), 7, 0)
    assert all(kind.exportable for kind in kinds.values())
    assert not texture_kind(kinds["global"]).exportable


@pytest.mark.parametrize("coherent", [True, False])
@pytest.mark.parametrize("unified", [True, False])
def test_a_poorer_device(coherent: bool, unified: bool) -> None:
    found = scopes(with_properties_hidden(types_of(LAVAPIPE), coherent=coherent, unified=unified))
    kinds = memory_kinds(found, LIMITS, 7, 0)
    assert kinds["global"].host_access == ("read_write" if unified else "none")
    visible = [kind for kind in kinds.values() if kind.host_access != "none"]
    assert len(visible) == 1
    assert visible[0].coherent == coherent
    assert {memory.index for memory in found.values()} == {0}
