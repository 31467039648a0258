"""The conformance suite on a real driver, in every way of using it, and under the validation layer."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pytest

from landbridge.device.api import Device
from landbridge.testing.conformance.acquisitions import AcquisitionConformance
from landbridge.testing.conformance.fences import FenceConformance
from landbridge.testing.conformance.lifecycles import LifecycleConformance
from landbridge.testing.conformance.next_lives import NextLifeConformance
from landbridge.testing.conformance.sharing import SharingConformance
from landbridge.testing.conformance.suspensions import SuspensionConformance
from landbridge.testing.conformance.timing import TimingConformance
from landbridge.testing.conformance.workspaces import WorkspaceConformance
from tests.devices.present import first_instance
from tests.selection.installed import missing
from tests.testing.whole_suite import run_conformance

_LAYER = "VK_LAYER_KHRONOS_validation"

#: Of what it has nothing: a life, memory to share, workspaces, scopes that come and go, fences of others, sleep, and
#: where lavapipe is alone a second instance.
_ABSENT = {
    *vars(LifecycleConformance),
    *vars(NextLifeConformance),
    *vars(SharingConformance),
    *vars(WorkspaceConformance),
    *vars(AcquisitionConformance),
    *vars(FenceConformance),
    *vars(SuspensionConformance),
}
_SEEN_IN_COHERENT_MEMORY = ("test_coherent_means_coherent", *vars(TimingConformance))


@pytest.mark.sample(2)
def test_conformance(device: Device) -> None:
    results = run_conformance("vulkan:0")
    assert [r for r in results if r.outcome == "fail"] == []
    inapplicable = {r.name for r in results if r.outcome == "skip"}
    assert inapplicable <= {
        *_ABSENT,
        "test_hidden_scope",
        "test_denormals",  # a Vulkan driver may flush them, and its target says nothing of them
        "test_coherent_memory_as_host_dlpack",
        "test_freed_bytes_can_be_had_again",
        "test_after_out_of_memory",
        "test_device_addresses",
        "test_alignment_of_device_addresses",
        "test_launch_within_rows",  # its scopes of rows are images, which have no row tables
        "test_recorded_launches_in_rows",
        # Without coherent memory there is nowhere to see a copy but in the host's, and copies there are done on return.
        *(() if any(kind.coherent for kind in device.memory_kinds.values()) else _SEEN_IN_COHERENT_MEMORY),
    }


@pytest.mark.full
def test_the_validation_layer_finds_nothing(tmp_path: Path) -> None:
    assert _messages(tmp_path, "variants") == []


@pytest.mark.full
def test_the_validation_layer_is_looking(tmp_path: Path) -> None:
    messages = _messages(tmp_path, "illegal flush")
    assert [m for m in messages if "VUID-VkMappedMemoryRange-offset-00687" in m], messages


def _messages(cache: Path, *words: str) -> list[str]:
    """What the validation layer says of a child process, with pipeline caches; it says nothing of what is right."""
    first_instance("vulkan")
    if _LAYER not in _layers():
        missing("the Khronos validation layer", "debian")
    child = subprocess.run(
        [sys.executable, "-m", "tests.devices.vulkan.driver_work", *words],
        env={**os.environ, "VK_INSTANCE_LAYERS": _LAYER, "LANDBRIDGE_CACHE": str(cache)},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert child.returncode == 0 and "DONE" in child.stdout, child.stdout + child.stderr
    return [
        line for line in child.stdout.splitlines() if "Validation" in line or line.startswith(("VUID", "UNASSIGNED"))
    ]


def _layers() -> set[str]:
    """The layers that the loader knows."""

    class LayerProperties(ctypes.Structure):
        _fields_: ClassVar = [
            ("name", ctypes.c_char * 256),
            ("versions", ctypes.c_uint32 * 2),
            ("description", ctypes.c_char * 256),
        ]

    loader, count = ctypes.CDLL("libvulkan.so.1"), ctypes.c_uint32()
    loader.vkEnumerateInstanceLayerProperties(ctypes.byref(count), None)
    found = (LayerProperties * count.value)()
    loader.vkEnumerateInstanceLayerProperties(ctypes.byref(count), found)
    return {layer.name.decode() for layer in found}
