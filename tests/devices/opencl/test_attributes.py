"""Options of a Target from what a driver says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.selection.installed import package

cl = package("pyopencl", "test")

from landbridge.devices.opencl.attributes import _vector_registers, svm  # noqa: E402


@pytest.mark.parametrize(("unified", "wanted"), [(True, "coarse"), (False, "none")])
def test_coarse_shared_memory_needs_one_memory(unified: bool, wanted: str) -> None:
    coarse = cl.device_svm_capabilities.COARSE_GRAIN_BUFFER
    device: Any = SimpleNamespace(svm_capabilities=coarse, host_unified_memory=unified)
    assert svm(device) == wanted


def test_work_items_of_a_gpu_keep_as_many_numbers_whatever_its_vectors() -> None:
    assert {bits * _vector_registers("gpu", bits) // 32 for bits in (32, 64, 128, 256)} == {64}
    assert _vector_registers("cpu", 512) == 32
