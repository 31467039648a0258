"""Programs whose kernels read and write images, against the same programs in flat memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper

import landbridge as lb
from landbridge.device.api import Device, Region
from landbridge.errors import InputError, PlacementError
from landbridge.executable.executable import Executable
from landbridge.executable.instructions import AllocStorage
from landbridge.targets import Target
from landbridge.targets.images import DTYPES
from tests.codegen.vulkan.launcher import check_legal
from tests.devices.opencl.test_textures import SHAPE, network, of
from tests.devices.vulkan.test_modules import api_of

TEXTURE = "vulkan@global.texture[2,3]"
Array = np.ndarray[Any, Any]


def run(executable: Executable, device: Device, x: Array) -> Array:
    session = lb.Session(executable, device=device)
    session.set_input(executable.main.inputs[0].name, x)
    for _ in range(2):  # the second is a recording's
        session.run()
    return np.array(session.get_output(0).to_device("cpu"))


def scopes(executable: Executable) -> set[str]:
    return {storage.scope for storage in executable.memory}


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "place",
    [
        {"conv": TEXTURE},
        {"conv*": TEXTURE, "relu": TEXTURE, "add": TEXTURE, "softmax": TEXTURE},
        {"x": TEXTURE, "relu": "vulkan@global.texture[3,4]", "w1": "vulkan@global.texture[1,4]"},
    ],
)
def test_the_result_of_flat_memory(device: Device, place: dict[str, str]) -> None:
    target = Target.from_device(device)
    x = np.random.default_rng(1).standard_normal(SHAPE).astype(np.float32)
    placed, flat = lb.compile(network(), target=target, place=place), lb.compile(network(), target=target)
    assert "global.texture" in scopes(placed) - scopes(flat)
    # sums of 72 products in another order: sqrt(72) x 2^-23 of values up to 1, in two layers
    np.testing.assert_allclose(run(placed, device, x), run(flat, device, x), rtol=0, atol=2e-6)


@pytest.mark.parametrize("channels", [8, 7, 5])
@pytest.mark.parametrize("place", [("relu",), ("x", "conv", "relu", "conv2", "softmax"), ("relu", "w1")])
def test_an_image_whose_layout_the_compiler_chooses(plain: Device, place: tuple[str, ...], channels: int) -> None:
    """The lanes of its pixels are channels, the last of which may be padding."""
    target, shape = Target.from_device(plain), (2, channels, 6, 5)
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    placed = lb.compile(network(shape), target=target, place=dict.fromkeys(place, "vulkan@global.texture[blocked]"))
    images = {i.shape for i in placed.main.instructions if isinstance(i, AllocStorage) and i.shape}
    assert (2 * 2 * 6, 5, 4) in images
    flat = lb.compile(network(shape), target=target)
    np.testing.assert_allclose(run(placed, plain, x), run(flat, plain, x), rtol=0, atol=2e-6)


@pytest.mark.parametrize("channels", [4, 7])
@pytest.mark.parametrize("place", [("first",), ("first", "second"), ("second", "third")])
def test_neighbours_of_such_an_image(plain: Device, place: tuple[str, ...], channels: int) -> None:
    """What is computed of plain values is blocked where it lies in an image, so that no pixel is written in parts."""
    rng, shape = np.random.default_rng(2), (2, channels, 6, 5)
    weights = {name: rng.standard_normal((channels, channels, 1, 1)).astype(np.float32) / 4 for name in ("v", "w")}
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="first"),
        helper.make_node("Conv", ["a", "v"], ["b"], name="second"),
        helper.make_node("Conv", ["b", "w"], ["y"], name="third"),
    ]
    model, target = of(nodes, np.dtype(np.float32), shape, weights), Target.from_device(plain)
    placed = lb.compile(model, target=target, place=dict.fromkeys(place, "vulkan@global.texture[blocked]"))
    images = {i.shape for i in placed.main.instructions if isinstance(i, AllocStorage) and i.shape}
    assert images == {(2 * -(-channels // 4) * 6, 5, 4)}
    x = rng.standard_normal(shape).astype(np.float32)
    flat = lb.compile(model, target=target)
    # two layers of sums of at most 7 products of numbers below 4
    np.testing.assert_allclose(run(placed, plain, x), run(flat, plain, x), rtol=0, atol=1e-5)


@pytest.mark.full
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    shape=st.tuples(st.just(1), st.integers(1, 9), st.integers(1, 9), st.sampled_from((1, 2, 4))),
    where=st.sets(st.sampled_from(("x", "conv", "relu", "conv2", "add", "softmax")), min_size=1),
    separators=st.sampled_from(("2,3", "1,3")),
)
def test_shapes(plain: Device, shape: tuple[int, ...], where: set[str], separators: str) -> None:
    target = Target.from_device(plain)
    place = dict.fromkeys(sorted(where), f"vulkan@global.texture[{separators}]")
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    placed, flat = (lb.compile(network(shape), target=target, place=p) for p in (place, {}))
    assert isinstance(placed, Executable) and isinstance(flat, Executable)
    np.testing.assert_allclose(run(placed, plain, x), run(flat, plain, x), rtol=0, atol=2e-6)


@pytest.mark.sample(5)
@pytest.mark.parametrize("lanes", [1, 2, 4])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_element_that_an_image_holds(plain: Device, dtype: str, lanes: int) -> None:
    """By its bits: infinities, numbers too small for others, zeros with signs."""
    kind = np.dtype(dtype)
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], name="turn", perm=[1, 0, 2]),
        helper.make_node("Transpose", ["t"], ["m"], name="again", perm=[1, 0, 2]),
        helper.make_node("Transpose", ["m"], ["y"], name="back", perm=[0, 1, 2]),
    ]
    shape, where = (3, 5, lanes), "vulkan@global.texture[1,2]"
    model = of(nodes, kind, shape, {})
    executable = lb.compile(model, target=Target.from_device(plain), place={"x": where, "turn": where, "again": where})
    assert "global.texture" in scopes(executable)
    rng = np.random.default_rng(2)
    x = rng.integers(0, 256, (*shape, kind.itemsize), np.uint8).view(kind)[..., 0]
    if kind.kind == "f":
        x = np.where(np.isnan(x), kind.type(1), x)
        x.flat[:5] = [np.inf, -np.inf, -0.0, np.finfo(kind).smallest_subnormal, -np.finfo(kind).smallest_subnormal]
    assert run(executable, plain, x).tobytes() == x.tobytes()


def test_a_file_keeps_what_is_an_image(plain: Device, tmp_path: Any) -> None:
    executable = lb.compile(network(), target=Target.from_device(plain), place={"conv2": TEXTURE})
    executable.save(tmp_path / "net.lbx")
    x = np.random.default_rng(1).standard_normal(SHAPE).astype(np.float32)
    np.testing.assert_array_equal(run(lb.load(tmp_path / "net.lbx"), plain, x), run(executable, plain, x))


@pytest.mark.parametrize(
    ("shape", "found"), [((1, 2, 3, 3), "3 elements in a pixel"), ((1, 1, 1 << 20, 4), "1 rows of 1048576 pixels")]
)
def test_what_the_device_has_no_image_for(plain: Device, shape: tuple[int, ...], found: str) -> None:
    relu = helper.make_node("Relu", ["x"], ["y"], name="relu")
    model = of([relu], np.dtype(np.float32), shape, {})
    with pytest.raises(PlacementError, match=found):
        lb.compile(model, target=Target.from_device(plain), place={"relu": TEXTURE})


def test_kernels_are_given_the_images_that_they_take(plain: Device) -> None:
    """A kernel that copies one image into another is refused what it was not compiled for."""
    nodes = [helper.make_node("Transpose", ["x"], ["t"], name="turn", perm=[1, 0, 2])]
    nodes += [helper.make_node("Transpose", ["t"], ["y"], name="back", perm=[1, 0, 2])]
    model = of(nodes, np.dtype(np.float32), (3, 5, 4), {})
    where = "vulkan@global.texture[1,2]"
    executable = lb.compile(model, target=Target.from_device(plain), place={"x": where, "turn": where})
    api = api_of(plain)
    (image,) = [module.image for module in executable.modules if module.image.format == "spirv"]
    check_legal(image.code)
    module = api.load_module(0, image.code, "spirv")
    (sequence,) = [s for s in image.functions.values() if s.images == (0, 1)]
    (launch,) = sequence.launches
    spaces = [api.alloc_data_space_nd(0, s, "float32", "global.texture", 1) for s in ((3, 5, 4), (5, 3, 4), (5, 3, 2))]
    source, target, narrow = map(Region, spaces)
    flat = api.alloc_data_space(0, 4096, 1, "global", None)
    spaces.append(flat)
    for args, wrong in (
        ((Region(flat), target), "was given a buffer where it takes an image"),
        ((source, Region(target.space, 48)), "an image from byte 48 on"),
        ((source, narrow), "writes images of Rgba32ui and was given one of Rg32ui"),
    ):
        with pytest.raises(InputError, match=wrong):
            api.launch(module, launch.kernel, launch.grid, launch.block, args, None)
    api.launch(module, launch.kernel, launch.grid, launch.block, (source, target), None)
    for space in spaces:
        api.free_data_space(space)
