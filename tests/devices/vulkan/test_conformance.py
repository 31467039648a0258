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
from landbridge.testing.conformance.lifecycles import LifecycleConformance
from landbridge.testing.conformance.sharing import SharingConformance
from landbridge.testing.conformance.timing import TimingConformance
from landbridge.testing.conformance.workspaces import WorkspaceConformance
from tests.devices.present import first_instance
from tests.selection.installed import missing
from tests.testing.whole_suite import run_conformance

_LAYER = "VK_LAYER_KHRONOS_validation"

#: The suite, a launch, a recording, a Session, one with images, in every way; a process of its own, whose start reads
#: the layers. With "break" it also flushes a range that the specification forbids, so that the layer is seen to look.
_CHILD = """
import ctypes, sys
import numpy as np
import landbridge as lb
from landbridge.device import registry
from landbridge.devices.vulkan import VulkanDeviceAPI, structs_work
from landbridge.targets import Target
from tests.testing.whole_suite import run_conformance
from tests.devices.opencl.test_session import expected, frame, model
from tests.devices.vulkan.conftest import VARIANTS
from tests.devices.vulkan.shaders import SAXPY, assembled
from tests.devices.vulkan.test_textures import SHAPE, TEXTURE, network, run

def work(api):
    registry._plugins._known["vulkan"], registry._types[7], registry._devices = api, "vulkan", {}
    failed = [r for r in run_conformance("vulkan:0") if r.outcome == "fail"]
    assert not failed, failed
    x, y = (lb.asarray(np.ones(64, np.float32), device="vulkan:0", copy=True) for _ in "xy")
    regions = [t.storage.live_region for t in (x, y)]
    module = api.load_module(0, assembled(SAXPY), "spirv")
    api.launch(module, "saxpy", (1, 1, 1), (64, 1, 1), [*regions, 2.0], None)
    api.begin_record(0, None)
    api.launch(module, "saxpy", (1, 1, 1), (64, 1, 1), [*regions, 2.0], None)
    api.copy_data_from_to(regions[1], regions[0], 256, None, None)
    tape = api.end_record(0, None)
    for _ in range(3):
        api.replay(tape, {}, None)
    assert np.asarray(y.to_device("cpu"))[0] == 3 + 2 + 10 + 30
    device = lb.device("vulkan:0")
    session, frames = lb.Session(lb.compile(model(), Target.from_device(device)), device=device), [frame(1), frame(2)]
    for i in range(4):
        bind = session.set_input_zero_copy if device.memory_kind().importable else session.set_input
        bind("x", frames[i % 2])
        session.run()
        result = np.asarray(session.get_output(0).to_device("cpu"))
        assert (result == expected(frames[i % 2])).all()
    places = dict.fromkeys(("x", "conv", "relu"), TEXTURE)
    placed = lb.compile(network(), Target.from_device(device), place=places)
    run(placed, device, np.ones(SHAPE, np.float32))
    if "break" in sys.argv:
        device = api.logical(0)
        request = structs_work.VkMappedMemoryRange(memory=regions[0].space.handle.memory, offset=3, size=5)
        device.calls.vkFlushMappedMemoryRanges(device.handle, 1, ctypes.byref(request))

for options in [{}] if "break" in sys.argv else VARIANTS.values():
    work(VulkanDeviceAPI(**options))
print("DONE")
"""


#: Of what it has nothing: a life, memory to share, workspaces, scopes that come and go, and where lavapipe is alone a
#: second instance.
_ABSENT = {
    *vars(LifecycleConformance),
    *vars(SharingConformance),
    *vars(WorkspaceConformance),
    *vars(AcquisitionConformance),
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
    assert _messages(tmp_path) == []


@pytest.mark.full
def test_the_validation_layer_is_looking(tmp_path: Path) -> None:
    messages = _messages(tmp_path, "break")
    assert [m for m in messages if "VUID-VkMappedMemoryRange-offset-00687" in m], messages


def _messages(cache: Path, *words: str) -> list[str]:
    """What the validation layer says of a child process, with pipeline caches; it says nothing of what is right."""
    first_instance("vulkan")
    if _LAYER not in _layers():
        missing("the Khronos validation layer", "debian")
    child = subprocess.run(
        [sys.executable, "-c", _CHILD, *words],
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
