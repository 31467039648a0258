"""Programs whose kernels read and write images, against the same programs in flat memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper, numpy_helper

import landbridge as lb
from landbridge.device.api import Device
from landbridge.executable.executable import Executable
from landbridge.targets import Target
from landbridge.targets.images import DTYPES

from .transfers import read

SHAPE = (1, 8, 6, 4)
TEXTURE = "opencl@global.texture[2,3]"


@pytest.fixture(autouse=True)
def images(device: Device) -> None:
    if "global.texture" not in device.memory_kinds:
        pytest.skip(f"{device} has no images")


def network(shape: tuple[int, ...] = SHAPE) -> ModelProto:
    """``softmax(conv2(relu(conv(x))) + x)`` over channels; every tensor has ``shape``."""
    rng, channels = np.random.default_rng(0), shape[1]
    weights = {name: rng.standard_normal((channels, channels, 3, 3)).astype(np.float32) / 12 for name in ("w1", "w2")}
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("Conv", ["r", "w2"], ["d"], name="conv2", pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["d", "x"], ["s"], name="add"),
        helper.make_node("Softmax", ["s"], ["y"], name="softmax", axis=1),
    ]
    return of(nodes, np.dtype(np.float32), shape, weights)


def of(nodes: list[Any], dtype: np.dtype[Any], shape: tuple[int, ...], weights: dict[str, np.ndarray]) -> ModelProto:
    kind = helper.np_dtype_to_tensor_dtype(dtype)
    x, y = (helper.make_tensor_value_info(name, kind, shape) for name in "xy")
    constants = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "net", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def run(executable: Executable, device: Device, x: np.ndarray) -> np.ndarray:
    session = lb.Session(executable, device=device)
    session.set_input("x", x)
    for _ in range(2):  # the second is a recording's, where the driver has such
        session.run()
    return read(session.get_output("y"))


@pytest.fixture(scope="module")
def flat() -> tuple[np.ndarray, np.ndarray]:
    """An input of ``network`` and what the CPU makes of it."""
    x = np.random.default_rng(1).standard_normal(SHAPE).astype(np.float32)
    (y,) = lb.Session(lb.compile(network(), target="llvm"))(x)
    return x, np.asarray(y)


@pytest.mark.sample(2)
@pytest.mark.parametrize("device_class", ["cpu", "gpu"])
@pytest.mark.parametrize(
    "place",
    [
        {"conv": TEXTURE},
        {"conv*": TEXTURE, "relu": TEXTURE, "add": TEXTURE, "softmax": TEXTURE},
        {"x": TEXTURE, "relu": "opencl@global.texture[3,4]", "w1": "opencl@global.texture[1,4]"},
    ],
)
def test_the_result_of_flat_memory(
    device: Device, flat: tuple[np.ndarray, np.ndarray], place: dict[str, str], device_class: str
) -> None:
    target = Target({**Target.from_device(device).to_dict(), "device-class": device_class})
    executable = lb.compile(network(), target=target, place=place)
    assert "global.texture" in {storage.scope for storage in executable.memory}
    x, y = flat
    # sums of 72 products in another order: sqrt(72) x 2^-23 of values up to 1, in two layers
    np.testing.assert_allclose(run(executable, device, x), y, rtol=0, atol=2e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_element_that_an_image_holds(device: Device, dtype: str) -> None:
    kind = np.dtype(dtype)
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], name="turn", perm=[1, 0, 2]),
        helper.make_node("Max", ["t", "t"], ["m"], name="same"),
        helper.make_node("Transpose", ["m"], ["y"], name="back", perm=[1, 0, 2]),
    ]
    shape, where = (3, 5, 4), "opencl@global.texture[1,2]"
    model = of(nodes, kind, shape, {})
    executable = lb.compile(model, target=Target.from_device(device), place={"turn": where, "same": where})
    assert "global.texture" in {storage.scope for storage in executable.memory}
    rng = np.random.default_rng(2)
    if kind.kind == "f":
        x = rng.standard_normal(shape).astype(kind)
    else:
        info = np.iinfo(kind)
        x = rng.integers(info.min, info.max, shape, kind, endpoint=True)
    assert np.array_equal(run(executable, device, x), x)


def test_a_file_keeps_what_is_an_image(device: Device, flat: tuple[np.ndarray, np.ndarray], tmp_path: Any) -> None:
    executable = lb.compile(network(), target=Target.from_device(device), place={"conv2": TEXTURE})
    executable.save(tmp_path / "net.lbx")
    np.testing.assert_allclose(run(lb.load(tmp_path / "net.lbx"), device, flat[0]), flat[1], rtol=0, atol=2e-6)


def test_no_kernel_writes_the_image_that_it_reads(device: Device) -> None:
    """A sum over the last use of a tensor is written onto it in flat memory, and never where that is an image."""
    pools = [
        helper.make_node("MaxPool", ["x"], [name], name=name, kernel_shape=[k, k], pads=[k // 2] * 4)
        for name, k in (("p", 3), ("q", 5))
    ]
    last = helper.make_node("Softmax", ["s"], ["y"], name="softmax", axis=1)
    model = of([*pools, helper.make_node("Add", ["p", "q"], ["s"], name="add"), last], np.dtype(np.float32), SHAPE, {})
    plain = lb.compile(model, target=Target.from_device(device))
    assert "_in_place" in str(plain.main.instructions)
    placed = lb.compile(model, target=Target.from_device(device), place=dict.fromkeys(("p", "q", "add"), TEXTURE))
    assert "_in_place" not in str(placed.main.instructions)
    x = np.random.default_rng(2).standard_normal(SHAPE).astype(np.float32)
    np.testing.assert_array_equal(run(placed, device, x), run(plain, device, x))
