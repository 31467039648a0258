"""All that Landbridge does with a Vulkan driver, for a process of its own, whose start reads the driver's layers.

``python -m tests.devices.vulkan.driver_work [WORD ...]`` runs the conformance suite, a launch, a recording, a Session
and one with images, and prints DONE. Words:

- ``variants``: in each of the VARIANTS, not only as the driver is;
- ``illegal flush``: also flushes a range that the specification forbids, so that a layer is seen to look;
- ``without flush``, ``without invalidate``, ``flush of one atom``: with a mistake in all barriers.
"""

from __future__ import annotations

import ctypes
import sys

import numpy as np

import landbridge as lb
from landbridge.device import registry
from landbridge.devices.vulkan import VulkanDeviceAPI, structs_work
from landbridge.devices.vulkan.allocation import Allocation
from landbridge.targets import Target
from tests.devices.opencl.test_session import expected, frame, model
from tests.devices.vulkan.conftest import VARIANTS
from tests.devices.vulkan.shaders import SAXPY, assembled
from tests.devices.vulkan.test_textures import SHAPE, TEXTURE, network, run
from tests.testing.whole_suite import run_conformance


def work(api: VulkanDeviceAPI) -> None:
    """Use ``vulkan:0`` in all ways; raises AssertionError where a result is wrong."""
    failed = [result for result in run_conformance("vulkan:0") if result.outcome == "fail"]
    assert not failed, failed
    _launches(api)
    _sessions()


def _launches(api: VulkanDeviceAPI) -> None:
    x, y = (lb.asarray(np.ones(64, np.float32), device="vulkan:0", copy=True) for _ in "xy")
    regions = [t.storage.live_region for t in (x, y)]
    module = api.load_module(0, assembled(SAXPY), "spirv")
    api.launch(module, "saxpy", (1, 1, 1), (64, 1, 1), [*regions, 2.0], None)
    api.begin_record(0, None)
    api.launch(module, "saxpy", (1, 1, 1), (64, 1, 1), [*regions, 2.0], None)
    api.copy_data_from_to(regions[1], regions[0], 256, None, None)
    recording = api.end_record(0, None)
    for _ in range(3):
        api.replay(recording, {}, None)
    assert np.asarray(y.to_device("cpu"))[0] == 3 + 2 + 10 + 30


def _sessions() -> None:
    device = lb.device("vulkan:0")
    session, frames = lb.Session(lb.compile(model(), Target.from_device(device)), device=device), [frame(1), frame(2)]
    for i in range(4):
        bind = session.set_input_zero_copy if device.memory_kind().importable else session.set_input
        bind("x", frames[i % 2])
        session.run()
        result = np.asarray(session.get_output(0).to_device("cpu"))
        assert (result == expected(frames[i % 2])).all()
    placed = lb.compile(network(), Target.from_device(device), place=dict.fromkeys(("x", "conv", "relu"), TEXTURE))
    run(placed, device, np.ones(SHAPE, np.float32))


def flush_illegally(api: VulkanDeviceAPI) -> None:
    """Flush a range that does not begin at a multiple of the atom."""
    device = api.logical(0)
    allocation = lb.empty((64,), dtype="float32", device="vulkan:0").storage.live_region.space.handle
    request = structs_work.VkMappedMemoryRange(memory=allocation.memory, offset=3, size=5)
    device.calls.vkFlushMappedMemoryRanges(device.handle, 1, ctypes.byref(request))


def _flush_of_one_atom(allocation: Allocation, start: int, nbytes: int) -> None:
    _flush(allocation, start, min(nbytes, allocation.device.physical.limits.nonCoherentAtomSize))


def _nothing(allocation: Allocation, start: int, nbytes: int) -> None:
    del allocation, start, nbytes


_flush = Allocation.flush


def open_first(api: VulkanDeviceAPI) -> None:
    """Let ``vulkan:0`` be of ``api``, and open it, which copies some bytes to and fro."""
    registry._plugins._known["vulkan"], registry._types[7], registry._devices = api, "vulkan", {}
    lb.empty((1,), dtype="float32", device="vulkan:0")


def main(words: list[str]) -> None:
    for options in VARIANTS.values() if "variants" in words else [{}]:
        api = VulkanDeviceAPI(**options)
        open_first(api)
        if "without flush" in words:
            Allocation.flush = _nothing  # type: ignore[method-assign]
        if "without invalidate" in words:
            Allocation.invalidate = _nothing  # type: ignore[method-assign]
        if "flush of one atom" in words:
            Allocation.flush = _flush_of_one_atom  # type: ignore[method-assign]
        work(api)
        if "illegal flush" in words:
            flush_illegally(api)
    print("DONE")


if __name__ == "__main__":
    main(sys.argv[1:])
