"""The order in which memory objects are released: parts of a buffer before it, inner ones before those around them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from landbridge.device.api import Device, Region
from landbridge.devices.opencl.api import OpenCLDeviceAPI
from landbridge.devices.opencl.blocks import BufferBlock

from .test_modules import SOURCE


class Recorded:
    """A memory object that notes when it is released; ``get_sub_region`` gives others."""

    def __init__(self, log: list[str], name: str = "buffer", size: int = 4096) -> None:
        self.log, self.name, self.size = log, name, size

    def get_sub_region(self, start: int, size: int) -> Recorded:
        return Recorded(self.log, f"part at {start}", size)

    def release(self) -> None:
        self.log.append(self.name)


def test_parts_go_before_their_buffer() -> None:
    log: list[str] = []
    block = BufferBlock(None, "global", Recorded(log), 0, 4096)  # type: ignore[arg-type]
    held = [block.part(start, 128) for start in (256, 128, 384, 256)]
    assert held[0] is held[3]
    block.release()
    assert log == ["part at 384", "part at 256", "part at 128", "buffer"]


@pytest.fixture
def opened(device: Device) -> Iterator[Device]:
    api = OpenCLDeviceAPI()
    yield Device(api, device.index)
    api.close(device.index)


def test_parts_that_a_recording_holds_are_released_with_the_block(opened: Device) -> None:
    api, index = opened.api, opened.index
    assert isinstance(api, OpenCLDeviceAPI)
    step = api.memory_kinds(index)["global"].offset_alignment
    module = api.load_module(index, SOURCE, "opencl-c")
    space = api.alloc_data_space(index, 4 * step, 1, "global", None)
    block = space.handle
    stream = api.create_stream(index)
    for start in (0, step, 2 * step):
        api.begin_record(index, stream)
        api.launch(module, "scale", (1, 1, 1), (8, 1, 1), (Region(space, start), 2.0, 8), stream)
        recording = api.end_record(index, stream)
        event = api.replay(recording, {}, stream)
        assert event is not None
        event.synchronize()
    assert block.is_divided and api._instance(index).divided == {block}
    api.free_data_space(space)
    assert not block.is_divided and not api._instance(index).divided


def test_closing_releases_what_kernels_were_given(opened: Device) -> None:
    api, index = opened.api, opened.index
    assert isinstance(api, OpenCLDeviceAPI)
    step = api.memory_kinds(index)["global"].offset_alignment
    module = api.load_module(index, SOURCE, "opencl-c")
    space = api.alloc_data_space(index, 2 * step, 1, "global", None)
    api.launch(module, "scale", (1, 1, 1), (8, 1, 1), (Region(space, step), 2.0, 8), None)
    assert space.handle.is_divided
    api.close(index)
    assert not space.handle.is_divided
    api.free_data_space(space)
