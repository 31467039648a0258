"""Images are used again as a whole, by requests for the very same, and given back when memory runs out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

import landbridge as lb
from landbridge.device import registry
from landbridge.device.api import Device
from landbridge.errors import InputError, OutOfMemoryError
from landbridge.memory.allocators.base import Block, NdSize, QueuedUse
from landbridge.memory.allocators.default import default_allocator
from landbridge.memory.allocators.keepers import trim
from landbridge.memory.allocators.naive import NaiveAllocator
from landbridge.memory.allocators.whole_objects import WholeObjectAllocator
from landbridge.testing.sim_scratch import SimScratchDeviceAPI

TEXTURE = "global.texture"


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimScratchDeviceAPI]:
    made = SimScratchDeviceAPI()
    monkeypatch.setitem(registry._plugins._known, made.name, made)
    monkeypatch.setattr(registry, "_devices", {})
    yield made
    made.check_guards()


def image(height: int = 8, width: int = 8, dtype: str = "float32") -> lb.Tensor:
    return lb.empty((height, width, 4), dtype=dtype, device="sim:scratch", scope=TEXTURE)


def test_an_image_is_used_again(api: SimScratchDeviceAPI) -> None:
    first = image()
    handle = first.storage.live_region.space.handle
    del first
    assert image().storage.live_region.space.handle is handle
    assert api.used_bytes(TEXTURE) == 8 * 128


@pytest.mark.parametrize("other", [(8, 7, "float32"), (7, 8, "float32"), (8, 8, "float16")])
def test_only_by_the_very_same(api: SimScratchDeviceAPI, other: tuple[int, int, str]) -> None:
    first = image()
    handle = first.storage.live_region.space.handle
    del first
    assert image(*other).storage.live_region.space.handle is not handle


def test_two_at_once_are_two(api: SimScratchDeviceAPI) -> None:
    first, second = image(), image()
    assert first.storage.live_region.space.handle is not second.storage.live_region.space.handle


def test_retained_images_free_memory(api: SimScratchDeviceAPI) -> None:
    image(1024, 32)
    assert api.used_bytes(TEXTURE) == 1 << 19
    image(2048, 32)
    assert api.used_bytes(TEXTURE) == 1 << 20
    with pytest.raises(OutOfMemoryError):
        image(4096, 32)


def test_trim(api: SimScratchDeviceAPI) -> None:
    image()
    assert trim(registry.device("sim:scratch")) == 8 * 8 * 16
    assert api.used_bytes(TEXTURE) == 0


def test_rows_are_not_retained(api: SimScratchDeviceAPI) -> None:
    assert isinstance(default_allocator(registry.device("sim:scratch"), "global.vtcm"), NaiveAllocator)
    lb.empty((8, 8), dtype="float32", device="sim:scratch", scope="global.vtcm")
    assert api.used_bytes("global.vtcm") == 0


def test_bytes_are_refused(api: SimScratchDeviceAPI) -> None:
    with pytest.raises(InputError, match="holds objects and was asked for 64 bytes"):
        default_allocator(registry.device("sim:scratch"), TEXTURE).allocate(64, 1)


class _Pending:
    def __init__(self) -> None:
        self.waited = False

    def query(self) -> bool:
        return self.waited

    def synchronize(self, timeout: float | None = None) -> bool:
        self.waited = True
        return True


def test_work_on_an_image_comes_before_its_next_use(api: SimScratchDeviceAPI) -> None:
    device = registry.device("sim:scratch")
    allocator = default_allocator(device, TEXTURE)
    size = NdSize((2, 2, 4), "float32")
    ordered, elsewhere = _Pending(), _Pending()
    allocator.deallocate(allocator.allocate(size, 1, device), [QueuedUse(ordered, device)])
    block = allocator.allocate(size, 1, device)
    assert [use.event for use in block.uses] == [ordered]
    assert not ordered.waited
    allocator.deallocate(block, [QueuedUse(elsewhere, device)])
    assert allocator.allocate(size, 1, None).uses == ()
    assert elsewhere.waited


class _Model(RuleBasedStateMachine):
    """Against a plain account of what is out: no object twice, every byte given back at the end."""

    blocks: Bundle[Block] = Bundle("blocks")

    def __init__(self) -> None:
        super().__init__()
        self.api = SimScratchDeviceAPI()
        self.allocator = WholeObjectAllocator(NaiveAllocator(Device(self.api), TEXTURE))
        self.out: dict[int, NdSize] = {}

    @rule(target=blocks, height=st.integers(1, 3), dtype=st.sampled_from(["uint8", "float32"]))
    def take(self, height: int, dtype: str) -> Block:
        size = NdSize((height, 2, 4), dtype)
        block = self.allocator.allocate(size, 64)
        space = block.region.space
        assert tuple(space.physical_shape) == size.physical_shape
        assert id(space.handle) not in self.out
        self.out[id(space.handle)] = size
        return block

    @rule(block=consumes(blocks))
    def give_back(self, block: Block) -> None:
        del self.out[id(block.region.space.handle)]
        self.allocator.deallocate(block)

    @rule()
    def trim(self) -> None:
        self.allocator.trim()
        assert self.api.used_bytes(TEXTURE) == 64 * sum(size.physical_shape[0] for size in self.out.values())

    @invariant()
    def enough_is_allocated(self) -> None:
        assert self.api.used_bytes(TEXTURE) >= 64 * sum(size.physical_shape[0] for size in self.out.values())


TestModel = _Model.TestCase
TestModel.settings = settings(max_examples=30, stateful_step_count=30)


def test_content_survives_in_the_image_that_is_out(api: SimScratchDeviceAPI) -> None:
    values = np.arange(256, dtype=np.float32).reshape(8, 8, 4)
    retained = lb.asarray(values).to_device("sim:scratch", scope=TEXTURE)
    for _ in range(3):
        lb.asarray(values + 1).to_device("sim:scratch", scope=TEXTURE)
    np.testing.assert_array_equal(np.asarray(retained.to_device("cpu")), values)


def test_a_block_comes_back_once() -> None:
    allocator = WholeObjectAllocator(NaiveAllocator(Device(SimScratchDeviceAPI()), TEXTURE))
    block = allocator.allocate(NdSize((4, 4, 4), "float32"), 64)
    allocator.deallocate(block)
    with pytest.raises(InputError, match="is not out of this allocator"):
        allocator.deallocate(block)
    assert allocator.trim() == block.nbytes


def test_objects_go_back_with_the_allocator(api: SimScratchDeviceAPI) -> None:
    made = WholeObjectAllocator(NaiveAllocator(Device(api, 0), TEXTURE))
    made.deallocate(made.allocate(NdSize((8, 8, 4), "float32"), 64))
    assert api.used_bytes(TEXTURE) > 0
    del made
    assert api.used_bytes(TEXTURE) == 0
