"""The device of a Module: the one that is named, the thread's, or that of the target."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import landbridge as lb
from landbridge.device.api import Device
from landbridge.errors import BindError
from tests.devices.opencl.transfers import filled, read

ADD = """<ir_version: 8, opset_import: ["": 17]> g (float[2,3] a, float[2,3] b) => (float[2,3] c) { c = Add(a, b) }"""


@pytest.fixture(scope="module")
def executable() -> lb.Executable:
    return lb.compile(onnx.parser.parse_model(ADD), "opencl")


def check(module: lb.Module, device: Device) -> None:
    (function,) = module.values()
    a, b, c = (filled(device, np.full((2, 3), value)) for value in (1, 2, 0))
    function(a, b, c)
    np.testing.assert_array_equal(read(c), 3)


def test_it_is_the_threads_or_that_of_the_target(device: Device, executable: lb.Executable) -> None:
    check(lb.Module(executable), device)
    with lb.set_device(device):
        check(lb.Module(executable), device)


@pytest.mark.parametrize("other", ["cpu", "sim:lazy"])
def test_another_device_that_is_set_is_not_replaced(device: Device, executable: lb.Executable, other: str) -> None:
    with lb.set_device(other):
        with pytest.raises(BindError, match=f"{other}:0"):
            lb.Module(executable)
        check(lb.Module(executable, device=device), device)
