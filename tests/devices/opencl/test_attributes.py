"""Options of a Target from what a driver says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from landbridge.device.attr import DeviceAttr
from tests.selection.installed import package

cl = package("pyopencl", "test")

from landbridge.devices.opencl.attributes import _vector_registers, attribute, svm  # noqa: E402


@pytest.mark.parametrize(("unified", "wanted"), [(True, "coarse"), (False, "none")])
def test_coarse_shared_memory_needs_one_memory(unified: bool, wanted: str) -> None:
    coarse = cl.device_svm_capabilities.COARSE_GRAIN_BUFFER
    device: Any = SimpleNamespace(svm_capabilities=coarse, host_unified_memory=unified)
    assert svm(device) == wanted


def test_work_items_of_a_gpu_keep_as_many_numbers_whatever_its_vectors() -> None:
    assert {bits * _vector_registers("gpu", bits) // 32 for bits in (32, 64, 128, 256)} == {64}
    assert _vector_registers("cpu", 512) == 32


NVIDIA: dict[str, Any] = {
    "extensions": "cl_khr_fp64 cl_nv_device_attribute_query",
    "version": "OpenCL 3.0 CUDA",
    "warp_size_nv": 32,
    "registers_per_block_nv": 65536,
    "max_work_group_size": 1024,
    "max_work_item_sizes": [1024, 1024, 64],
    "int_ptr": 0,
}
AMD: dict[str, Any] = {
    **NVIDIA,
    "extensions": "cl_amd_device_attribute_query",
    "version": "OpenCL 2.0 AMD-APP (3602.0)",
    "wavefront_width_amd": 64,
    "max_work_group_size": 256,
}


@pytest.mark.parametrize(
    ("driver", "attr", "wanted"),
    [
        (NVIDIA, DeviceAttr.SUBGROUP_SIZE, 32),
        (NVIDIA, DeviceAttr.REGISTERS_PER_BLOCK, 65536),
        (NVIDIA, DeviceAttr.API_VERSION, "3.0"),
        (NVIDIA, DeviceAttr.MAX_BLOCK_DIMENSIONS, (1024, 1024, 64)),
        (AMD, DeviceAttr.SUBGROUP_SIZE, 64),
        (AMD, DeviceAttr.REGISTERS_PER_BLOCK, None),
        (AMD, DeviceAttr.API_VERSION, "2.0"),
        (AMD, DeviceAttr.MAX_BLOCK_DIMENSIONS, (256, 256, 64)),  # no more than a work-group has in all
    ],
)
def test_what_extensions_of_vendors_report(driver: dict[str, Any], attr: DeviceAttr, wanted: object) -> None:
    device: Any = SimpleNamespace(**driver)
    assert attribute(device, attr) == wanted


def test_the_pitch_of_images_is_of_the_widest_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("landbridge.devices.opencl.attributes._numbers", lambda *query: [64])
    assert attribute(SimpleNamespace(), DeviceAttr.IMAGE_PITCH_BYTES) == 64 * 16  # type: ignore[arg-type]
