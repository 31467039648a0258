"""Drivers that end loops in silence after a number of iterations, as llvmpipe does: what is right there, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import landbridge as lb
from landbridge.device.api import Device
from landbridge.errors import FallbackWarning, ShapeError
from landbridge.targets import Target
from tests.devices.present import first_instance

LONG = 70_000  # more than llvmpipe's 65535


@pytest.fixture(scope="module")
def device() -> Device:
    found = first_instance("vulkan")
    if "max-loop-iterations" not in Target.from_device(found).options:
        pytest.skip(f"the driver of {found} ends no loops")
    return found


def model(op: str, shape: tuple[int | str, ...], axis: int, **attributes: Any) -> ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    element = TensorProto.INT64 if op == "ArgMax" else TensorProto.FLOAT
    y = helper.make_tensor_value_info("y", element, None)
    given = {"CumSum": [], "ReduceSum": [1]}
    axes = [helper.make_tensor("a", TensorProto.INT64, given[op], [axis])] if op in given else []
    attributes |= {} if op in given else {"axis": axis}
    node = helper.make_node(op, ["x", *(each.name for each in axes)], ["y"], **attributes)
    graph = helper.make_graph([node], "one", [x], [y], axes)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def session(device: Device, made: ModelProto) -> lb.Session:
    return lb.Session(lb.compile(made, target=Target.from_device(device)), device=device)


def computed(session: lb.Session, x: np.ndarray) -> np.ndarray:
    (result,) = session(lb.asarray(x, device="vulkan:0", copy=True))
    return np.asarray(result.to_device("cpu"))


@pytest.mark.parametrize(("shape", "axis"), [(("n", 4), 0), ((4, "n"), 1), (("m", "n"), 1)])
def test_long_reductions_along_open_dimensions(device: Device, shape: tuple[int | str, ...], axis: int) -> None:
    x = np.ones((4, LONG) if axis else (LONG, 4), np.float32)
    sums = session(device, model("ReduceSum", shape, axis, keepdims=0))
    np.testing.assert_array_equal(computed(sums, x), np.full(4, LONG))
    x[(slice(None), -1) if axis else -1] = 2
    largest = session(device, model("ArgMax", shape, axis, keepdims=0))
    np.testing.assert_array_equal(computed(largest, x), np.full(4, LONG - 1))


def test_a_length_that_the_driver_would_cut_is_refused(device: Device) -> None:
    sums = session(device, model("CumSum", ("n", 4), 0))
    short = np.ones((6_000, 4), np.float32)
    np.testing.assert_array_equal(computed(sums, short)[-1], np.full(4, 6_000))
    with pytest.raises(ShapeError, match=r"iterations of loops of kernel .* is 70001 with n=70000; 65534 is legal"):
        computed(sums, np.ones((LONG, 4), np.float32))


def test_a_kernel_that_the_driver_would_cut_is_the_cpus(device: Device) -> None:
    with pytest.warns(FallbackWarning, match="the driver ends loops after 65534"):
        sums = session(device, model("CumSum", (LONG, 4), 0))
    np.testing.assert_array_equal(computed(sums, np.ones((LONG, 4), np.float32))[-1], np.full(4, LONG))
