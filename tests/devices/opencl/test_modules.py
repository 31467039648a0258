"""Modules: kernels that compute, and errors that say why not."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyopencl as cl
import pytest

import landbridge as lb
from landbridge.device.api import Device, Region
from landbridge.devices.opencl.modules import source_options
from landbridge.errors import DeviceError, InputError, KernelBuildError

from .transfers import back, filled, region

SOURCE = b"""
kernel void scale(global float *x, float factor, int count) {
    size_t i = get_global_id(0);
    if (i < (size_t)count) x[i] *= factor;
}
kernel void add(global const float *a, global const float *b, global float *c) {
    size_t i = get_global_id(0);
    c[i] = a[i] + b[i];
}
kernel void where(global uint *out) {
    size_t i = get_global_id(2) * get_global_size(1) * get_global_size(0)
             + get_global_id(1) * get_global_size(0) + get_global_id(0);
    out[i] = get_group_id(0) + 16 * get_group_id(1) + 256 * get_group_id(2);
}
"""


@pytest.fixture(scope="module")
def module(device: Device) -> object:
    return device.api.load_module(device.index, SOURCE, "opencl-c")


def test_regions_and_numbers_reach_the_kernel(device: Device, module: object) -> None:
    x = filled(device, np.arange(100))
    event = device.api.launch(module, "scale", (2, 1, 1), (64, 1, 1), (region(x), 2.5, 50), None)
    assert event.synchronize()
    wanted = np.arange(100, dtype=np.float32)
    wanted[:50] *= 2.5
    assert np.array_equal(back(x), wanted)


def test_typed_numbers_are_taken_as_they_are(device: Device, module: object) -> None:
    x = filled(device, [1, 2])
    device.api.launch(module, "scale", (1, 1, 1), (2, 1, 1), (region(x), np.float32(3), np.int32(2)), None)
    assert back(x).tolist() == [3, 6]


def test_regions_begin_where_they_say(device: Device, module: object) -> None:
    a, c = filled(device, np.arange(128)), filled(device, np.zeros(64))
    at = region(a)
    later = Region(at.space, at.byte_offset + 256)
    device.api.launch(module, "add", (1, 1, 1), (64, 1, 1), (region(a), later, region(c)), None)
    assert np.array_equal(back(c), np.arange(64) + np.arange(64, 128))


def test_grid_counts_workgroups_along_three_axes(device: Device, module: object) -> None:
    out = lb.empty((4 * 3 * 2, 2), dtype="uint32", device=device)
    device.api.launch(module, "where", (4, 3, 2), (2, 1, 1), (region(out),), None)
    wanted = [x + 16 * y + 256 * z for z in range(2) for y in range(3) for x in range(4) for _ in range(2)]
    assert back(out).ravel().tolist() == wanted


def test_memory_is_held_while_a_launch_needs_it(device: Device, module: object) -> None:
    """The driver counts no references of arguments that were set: freeing one early would end the process."""
    retained = filled(device, np.zeros(1 << 16))
    for _ in range(50):
        x = filled(device, np.ones(1 << 16))
        device.api.launch(
            module, "add", (1 << 10, 1, 1), (64, 1, 1), (region(x), region(retained), region(retained)), None
        )
        x.storage.free()
        del x
    assert (back(retained) == 50).all()


def test_a_build_error_has_log_and_source(device: Device) -> None:
    with pytest.raises(KernelBuildError, match=r"(?s)driver's log.*undeclared.*   2 +x = nothing;"):
        device.api.load_module(device.index, b"kernel void f(global int *x) {\n    x = nothing;\n}", "opencl-c")


def test_compiler_options_arrive(device: Device) -> None:
    source = b"#ifndef GIVEN\n#error not given\n#endif\nkernel void f(global int *x) { x[0] = GIVEN; }"
    module = device.api.load_module(device.index, source, "opencl-c", "-DGIVEN=7")
    out = lb.empty((1,), dtype="int32", device=device)
    device.api.launch(module, "f", (1, 1, 1), (1, 1, 1), (region(out),), None)
    assert back(out).tolist() == [7]


def test_what_does_not_fit_is_refused(device: Device, module: object) -> None:
    x = filled(device, [1])
    api = device.api
    with pytest.raises(DeviceError, match=r"no kernel 'nothing'.*add, scale, where"):
        api.launch(module, "nothing", (1, 1, 1), (1, 1, 1), (), None)
    with pytest.raises(InputError, match="takes 3 arguments; 1 were given"):
        api.launch(module, "scale", (1, 1, 1), (1, 1, 1), (region(x),), None)
    with pytest.raises(InputError, match="number of type int32"):
        api.launch(module, "scale", (1, 1, 1), (1, 1, 1), (region(x), 1.0, 1 << 40), None)
    with pytest.raises(InputError, match="three numbers over 0"):
        api.launch(module, "where", (0, 1, 1), (1, 1, 1), (region(x),), None)
    with pytest.raises(InputError, match="work-items in a block"):
        api.launch(module, "where", (1, 1, 1), (1 << 20, 1, 1), (region(x),), None)
    with pytest.raises(InputError, match="does not reach"):
        host = lb.empty((1,), dtype="float32", device="cpu")
        api.launch(module, "where", (1, 1, 1), (1, 1, 1), (region(host),), None)
    with pytest.raises(InputError, match="opencl-c, spirv"):
        api.load_module(device.index, b"", "ptx")


def test_an_offset_no_kernel_can_be_given(device: Device, module: object) -> None:
    x = filled(device, np.zeros(64))
    at = region(x)
    with pytest.raises(InputError, match=r"multiples of \d+ .*global\.svm"):
        device.api.launch(module, "where", (1, 1, 1), (1, 1, 1), (Region(at.space, at.byte_offset + 4),), None)


def test_quotients_are_rounded_right_where_the_device_says_it_can(device: Device) -> None:
    config = cl.device_fp_config
    for declared, requested in ((config.CORRECTLY_ROUNDED_DIVIDE_SQRT, True), (config.FMA, False)):
        options = source_options(SimpleNamespace(single_fp_config=config.DENORM | declared))  # type: ignore[arg-type]
        assert ("-cl-fp32-correctly-rounded-divide-sqrt" in options) == requested
    source = (
        b"kernel void ratio(global float *x, global const float *y) { x[get_global_id(0)] /= y[get_global_id(0)]; }"
    )
    rng = np.random.default_rng(0)
    over, under = (rng.uniform(1, 255, 4096).astype(np.float32) for _ in range(2))
    x, y = filled(device, over), filled(device, under)
    built = device.api.load_module(device.index, source, "opencl-c")
    device.api.launch(built, "ratio", (64, 1, 1), (64, 1, 1), (region(x), region(y)), None).synchronize()
    if source_options(device.api._instance(device.index).device)[1:]:
        assert np.array_equal(back(x), over / under)
    else:  # 2.5 units of the last place
        np.testing.assert_array_max_ulp(back(x), over / under, 3)
