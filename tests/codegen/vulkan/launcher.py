"""Runs device images of SPIR-V on the first Vulkan device: its memory is made for each call, guarded on both sides."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from landbridge.device.api import Device, Region, Space
from landbridge.devices.vulkan import VulkanDeviceAPI
from landbridge.executable.device_image import DeviceImage
from landbridge.executable.spirv import disassemble, words_of
from landbridge.memory.borrowed import host_device
from landbridge.memory.host_array import address_of
from tests.devices.present import first_instance
from tests.selection.installed import spirv_tool

Array = np.ndarray[Any, Any]
#: Bytes around every output that no kernel may change.
GUARD = 256


def check_legal(code: bytes) -> None:
    """spirv-val must accept ``code``."""
    done = subprocess.run(
        [spirv_tool("spirv-val"), "--target-env", "vulkan1.2", "-"], input=code, capture_output=True, check=False
    )
    assert done.returncode == 0, f"{done.stderr.decode()}{done.stdout.decode()}\n{disassemble(words_of(code))}"


@cache
def vulkan() -> Device:
    """The first device, used as tests of kernels need it."""
    return first_instance("vulkan")


class Program:
    """An image, loaded."""

    def __init__(self, image: DeviceImage) -> None:
        assert image.format == "spirv"
        if os.environ.get("LANDBRIDGE_SHOW_SOURCE"):
            print(disassemble(words_of(image.code)))
        check_legal(image.code)
        self.image = image
        self.device = vulkan()
        api = self.device.api
        assert isinstance(api, VulkanDeviceAPI)
        self.api = api
        self.module = api.load_module(self.device.index, image.code, image.format)

    def on_arrays(self, name: str, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Run function ``name`` on copies of ``inputs``; its results come back in ``outputs``."""
        sequence = self.image.functions[name]
        assert len(inputs) + len(outputs) == sequence.operands
        sources = [np.frombuffer(a.tobytes() or b"\0", np.uint8) for a in inputs]
        guarded = [np.full(a.nbytes + 2 * GUARD, 0xA5, np.uint8) for a in outputs]
        spaces = [self._space(a) for a in (*sources, *guarded)]
        regions = [Region(s, GUARD if i >= len(inputs) else 0) for i, s in enumerate(spaces)]
        spaces += [self._space(np.full(size, 0xA5, np.uint8)) for size in sequence.scratch]
        regions += [Region(s) for s in spaces[sequence.operands :]]
        try:
            for launch in sequence.launches:
                arguments = [regions[i] for i in launch.args]
                self.api.launch(self.module, launch.kernel, launch.grid, launch.block, arguments, None)  # type: ignore[arg-type]
            for space, g, a in zip(spaces[len(inputs) :], guarded, outputs, strict=False):
                self.api.copy_data_from_to(Region(space), host_region(g), g.nbytes, None, None)
                end = GUARD + a.nbytes
                assert (g[:GUARD] == 0xA5).all() and (g[end:] == 0xA5).all(), f"{name} wrote outside its output"
                a[...] = g[GUARD:end].view(a.dtype).reshape(a.shape)
        finally:
            for space in spaces:
                self.api.free_data_space(space)

    def _space(self, content: Array) -> Space:
        space = self.api.alloc_data_space(self.device.index, max(content.nbytes, 1), 256, "global", None)
        if content.nbytes:
            self.api.copy_data_from_to(host_region(content), Region(space), content.nbytes, None, None)
        return space


def host_region(array: Array) -> Region:
    """Where ``array`` lies, for copies."""
    return Region(Space(host_device(), "global", address_of(array)))
