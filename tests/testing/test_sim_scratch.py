"""sim:scratch itself: capacities, rows apart, guards that notice, textures out of reach."""

from __future__ import annotations

import ctypes
from itertools import pairwise

import numpy as np
import pytest

from landbridge.device.api import NdSpace, Region, Space
from landbridge.device.registry import device
from landbridge.errors import DeviceError, HostViewError, InputError, OutOfMemoryError, UseAfterFreeError
from landbridge.testing.sim_scratch import SimScratchDeviceAPI
from landbridge.testing.sim_scratch_memory import GUARD_BYTES, POISON


@pytest.fixture
def api() -> SimScratchDeviceAPI:
    return SimScratchDeviceAPI(seed=1)


def rows(api: SimScratchDeviceAPI, scope: str = "global.vtcm", shape: tuple[int, ...] = (6, 5)) -> NdSpace:
    return api.alloc_data_space_nd(0, shape, "float32", scope, 1)


def address(api: SimScratchDeviceAPI, space: NdSpace, row: int) -> int:
    region = space.row(row)
    return api.host_pointer(region.space) + region.byte_offset


def test_it_is_found_by_name() -> None:
    assert set(device("sim:scratch").memory_kinds) == {
        "global",
        "global.scratch",
        "global.vtcm",
        "global.pitched",
        "global.texture",
    }


def test_rows_of_a_table_lie_anywhere(api: SimScratchDeviceAPI) -> None:
    space = rows(api)
    assert space.row_pitch is None
    assert space.rows is not None
    assert space.row_bytes == 20
    found = [address(api, space, row) for row in range(6)]
    assert found != sorted(found)
    assert len({b - a for a, b in pairwise(found)}) > 1, "the rows have a pitch"
    assert all(place % 128 == 0 for place in found)
    assert min(abs(a - b) for a in found for b in found if a != b) >= 20 + GUARD_BYTES


def test_pitched_rows(api: SimScratchDeviceAPI) -> None:
    space = rows(api, "global.pitched")
    assert space.rows is None
    assert space.row_pitch == 256
    assert address(api, space, 3) - address(api, space, 0) == 768


def test_alignment_of_each_row(api: SimScratchDeviceAPI) -> None:
    space = api.alloc_data_space_nd(0, (4, 5), "float32", "global.vtcm", 2048)
    assert all(address(api, space, row) % 2048 == 0 for row in range(4))


@pytest.mark.parametrize("scope", ["global.vtcm", "global.pitched"])
@pytest.mark.parametrize("beyond", [20, -1, 20 + GUARD_BYTES - 21])
def test_a_write_beside_a_row_is_noticed(api: SimScratchDeviceAPI, scope: str, beyond: int) -> None:
    space = rows(api, scope)
    api.check_guards()
    ctypes.memset(address(api, space, 2) + beyond, 0, 1)
    with pytest.raises(DeviceError, match="bytes outside of"):
        api.check_guards()
    with pytest.raises(DeviceError, match="bytes outside of"):
        api.free_data_space(space)
    assert len(api.violations) == 2


def test_a_write_beside_a_block_is_noticed(api: SimScratchDeviceAPI) -> None:
    space = api.alloc_data_space(0, 128, 1, "global.scratch", None)
    ctypes.memset(api.host_pointer(space) + 128, 0, 1)
    with pytest.raises(DeviceError, match=r"bytes outside of 128 bytes of 'global.scratch'"):
        api.free_data_space(space)


def test_what_nobody_wrote_is_poison(api: SimScratchDeviceAPI) -> None:
    space = rows(api)
    assert ctypes.string_at(address(api, space, 4), 20) == bytes([POISON]) * 20


def test_capacity_counts_whole_rows(api: SimScratchDeviceAPI) -> None:
    space = rows(api, shape=(1024, 33))  # rows of 132 bytes, each takes 256
    assert api.used_bytes("global.vtcm") == 1 << 18
    with pytest.raises(OutOfMemoryError, match=r"128 bytes in rows, asked of scope 'global\.vtcm', 262144 of 262144"):
        rows(api, shape=(1, 1))
    api.free_data_space(space)
    assert api.used_bytes("global.vtcm") == 0
    rows(api, shape=(1, 1))


def test_capacity_of_the_flat_scratchpad(api: SimScratchDeviceAPI) -> None:
    api.alloc_data_space(0, 1 << 16, 1, "global.scratch", None)
    with pytest.raises(OutOfMemoryError, match=r"'global.scratch', 65536 of 65536 used"):
        api.alloc_data_space(0, 128, 1, "global.scratch", None)


def test_copies_go_row_by_row(api: SimScratchDeviceAPI) -> None:
    source, target = rows(api), rows(api, "global.pitched")
    values = np.arange(30, dtype=np.float32).reshape(6, 5)
    for row in range(6):
        ctypes.memmove(address(api, source, row), values[row].ctypes.data, 20)
        api.copy_data_from_to(source.row(row), target.row(row), 20, None, None)
    for row in range(6):
        np.testing.assert_array_equal(np.frombuffer(ctypes.string_at(address(api, target, row), 20), "f4"), values[row])
    api.check_guards()


@pytest.mark.parametrize("scope", ["global.vtcm", "global.pitched"])
def test_a_copy_cannot_leave_its_row(api: SimScratchDeviceAPI, scope: str) -> None:
    space, flat = rows(api, scope), Region(api.alloc_data_space(0, 256, 1, "global", None))
    first = space.row(1)
    beyond = Region(first.space, first.byte_offset + 4)
    for src, dst, nbytes in ((first, flat, 21), (flat, beyond, 20)):
        with pytest.raises(InputError, match=r"do not lie in .* whose rows have 20 bytes"):
            api.copy_data_from_to(src, dst, nbytes, None, None)


def test_a_table_has_no_address(api: SimScratchDeviceAPI) -> None:
    space = rows(api)
    with pytest.raises(HostViewError, match=r"6 rows of 'global.vtcm' have no address together"):
        api.host_pointer(space)
    flat = Region(api.alloc_data_space(0, 256, 1, "global", None))
    with pytest.raises(InputError, match="give a region of a row"):
        api.copy_data_from_to(Region(space), flat, 20, None, None)


def test_textures(api: SimScratchDeviceAPI) -> None:
    image = rows(api, "global.texture", (3, 5, 4))
    assert image.row_bytes == 80
    with pytest.raises(HostViewError, match="cannot address textures"):
        api.host_pointer(image.row(0).space)
    with pytest.raises(InputError, match=r"height, width and 4 lanes"):
        rows(api, "global.texture", (3, 5, 3))
    with pytest.raises(InputError, match=r"float16, float32"):
        api.alloc_data_space_nd(0, (3, 5, 4), "float64", "global.texture", 1)


def test_freed_rows_are_gone(api: SimScratchDeviceAPI) -> None:
    space = rows(api)
    row = space.row(1).space
    with pytest.raises(UseAfterFreeError, match=r"row 1 of 6 rows of 'global\.vtcm' is freed by itself"):
        api.free_data_space(row)
    api.free_data_space(space)
    with pytest.raises(UseAfterFreeError, match="used after it was freed"):
        api.host_pointer(row)
    with pytest.raises(UseAfterFreeError, match="freed twice"):
        api.free_data_space(space)


@pytest.mark.parametrize("shape", [(6,), (6, 5, 4), (-1, 5), ()])
def test_extents_that_make_no_space(api: SimScratchDeviceAPI, shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="legal: 2 extents"):
        rows(api, shape=shape)


def test_flat_and_nd_scopes_are_not_mixed_up(api: SimScratchDeviceAPI) -> None:
    with pytest.raises(InputError, match="legal: alloc_data_space_nd"):
        api.alloc_data_space(0, 64, 1, "global.vtcm", None)
    with pytest.raises(InputError, match="by alloc_data_space"):
        rows(api, "global")


def test_spaces_without_elements(api: SimScratchDeviceAPI) -> None:
    for scope in ("global.vtcm", "global.pitched"):
        for shape in ((0, 5), (5, 0)):
            space: Space = rows(api, scope, shape)
            api.check_guards()
            api.free_data_space(space)
