"""Images: every kind of pixel, copies between them and buffers, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device, Region
from landbridge.devices.vulkan.images import DTYPES
from landbridge.errors import HostViewError, InputError, OutOfMemoryError, UnsupportedError
from tests.devices.vulkan.shaders import SAXPY, assembled
from tests.devices.vulkan.test_modules import api_of, back

SCOPE = "global.texture"


@pytest.mark.sample(29)
@pytest.mark.parametrize("lanes", [1, 2, 4])
@pytest.mark.parametrize("dtype", DTYPES)
def test_pixels_come_back_as_they_went(device: Device, dtype: str, lanes: int) -> None:
    rng = np.random.default_rng(lanes)
    values = rng.integers(0, 255, 7 * 13 * lanes * np.dtype(dtype).itemsize, np.uint8).view(dtype)
    values = np.nan_to_num(values, nan=1, posinf=2, neginf=3).reshape(7, 13, lanes)
    there = lb.asarray(values).to_device(device, scope=SCOPE)
    assert there.storage.kind.scope == SCOPE
    assert (back(there) == values).all()
    assert (back(there.copy()) == values).all()


def test_large_images_are_staged_by_rows(device: Device) -> None:
    values = np.random.default_rng(1).standard_normal((700, 900, 4)).astype(np.float32)  # ten megabytes
    assert (back(lb.asarray(values).to_device(device, scope=SCOPE)) == values).all()


def test_tensors_make_rows_by_axis_separators(plain: Device) -> None:
    values = np.arange(2 * 3 * 5 * 4, dtype=np.float32).reshape(2, 3, 5, 4)
    there = lb.asarray(values).to_device(plain, scope=SCOPE, axis_separators=(2, 3))
    assert there.storage.live_region.space.physical_shape == (6, 5, 4)
    assert (back(there) == values).all()


def test_what_images_refuse(plain: Device) -> None:
    api = api_of(plain)
    for shape, dtype in (((4, 4, 3), "float32"), ((4, 4, 1), "float64"), ((0, 4, 1), "float32"), ((4, 4), "float32")):
        with pytest.raises(InputError, match=r"legal: rows, pixels and 1, 2 or 4 lanes"):
            api.alloc_data_space_nd(0, shape, dtype, SCOPE, 1)
    with pytest.raises(InputError, match="an image of 4 rows of 1000000 pixels"):
        api.alloc_data_space_nd(0, (4, 1000000, 1), "float32", SCOPE, 1)
    most = api.logical(0).physical.limits.maxImageDimension2D
    if most * most * 16 > api.logical(0).physical.max_allocation:
        with pytest.raises(OutOfMemoryError):
            api.alloc_data_space_nd(0, (most, most, 4), "float32", SCOPE, 1)
    with pytest.raises(UnsupportedError, match="holds images"):
        api.alloc_data_space(0, 64, 1, SCOPE, None)
    with pytest.raises(InputError, match=r"images lie in 'global\.texture'"):
        api.alloc_data_space_nd(0, (4, 4, 4), "float32", "global", 1)
    image = api.alloc_data_space_nd(0, (4, 8, 4), "uint8", SCOPE, 1)
    flat = api.alloc_data_space(0, 4096, 1, "global", None)
    for source, target, nbytes in (
        (Region(image, 2), Region(flat), 8),
        (Region(image, 16), Region(flat), 20),
        (Region(image), Region(flat), 40),
        (Region(image), Region(flat, 2), 8),
        (Region(flat, 6), Region(image), 8),
    ):
        with pytest.raises(InputError, match=r"legal: (whole rows, or whole pixels of one row|a multiple of 4)"):
            api.copy_data_from_to(source, target, nbytes, None, None)
    with pytest.raises(HostViewError, match="images"):
        api.host_pointer(image)
    module = api.load_module(0, assembled(SAXPY), "spirv")
    with pytest.raises(InputError, match="given an image where it takes a buffer"):
        api.launch(module, "saxpy", (1, 1, 1), (64, 1, 1), [Region(image), Region(flat), 1.0], None)
    for space in (image, flat):
        api.free_data_space(space)
