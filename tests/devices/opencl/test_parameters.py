"""Weights bound by reference to memory that kernels of a device use in place."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx import numpy_helper

import landbridge as lb
from landbridge.device.api import Device
from landbridge.errors import ZeroCopyError
from landbridge.executable.executable import Executable
from landbridge.targets import Target
from tests.devices.opencl.test_session import SHAPE, frame, model
from tests.devices.opencl.transfers import filled, put, read


@pytest.fixture
def replaceable(device: Device) -> Executable:
    return lb.compile(model(), target=Target.from_device(device), mutable=("b",))


def check(session: lb.Session, x: np.ndarray, bias: float) -> None:
    session.set_input("x", x)
    session.run()
    np.testing.assert_allclose(read(session.get_output(0)), np.maximum(x + bias, 0) * 2, rtol=1e-6)


def test_a_tensor_of_the_device_is_the_weight(device: Device, replaceable: Executable) -> None:
    sessions = [lb.Session(replaceable, device=device) for _ in range(2)]
    bias = filled(device, np.full(256, 3))
    with lb.no_copies():
        for session in sessions:
            session.set_params({"b": bias}, copy=False)
    x = frame(20)
    for value in (3, 5):
        put(bias, value)
        for session in sessions:
            with lb.ledger() as moves:
                check(session, x, value)
            assert "b" not in {move.tensor for move in moves}
            assert all(move.nbytes != bias.nbytes for move in moves)
    assert sessions[0].get_params()["b"] is bias and not bias.readonly
    sessions[0].set_params({"b": np.zeros(256, np.float32)})
    check(sessions[0], x, 0)
    check(sessions[1], x, 5)


def test_memory_of_the_host_is_the_weight_where_the_device_uses_it(device: Device, replaceable: Executable) -> None:
    session, x = lb.Session(replaceable, device=device), frame(21)
    bias = frame(22, 64)[0, 0]  # from the beginning of a page
    bias[:] = 2
    if not device.memory_kind().importable:
        with pytest.raises(ZeroCopyError, match=r"parameter 'b'.*copy=True"):
            session.set_params({"b": bias}, copy=False)
        session.set_params({"b": bias})
        check(session, x, 2)
        return
    session.set_params({"b": bias}, copy=False)
    for value in (2, -1):
        bias[:] = value
        with lb.ledger() as moves:
            check(session, x, value)
        assert all(move.nbytes != bias.nbytes for move in moves)


def test_a_tensor_of_another_device_is_refused(device: Device, replaceable: Executable) -> None:
    session = lb.Session(replaceable, device=device)
    other = lb.empty(256, dtype="float32", device="sim:lazy")
    with pytest.raises(ZeroCopyError, match=r"parameter 'b'.*sim:lazy"):
        session.set_params({"b": other}, copy=False)
    session.set_params({"b": np.zeros(256, np.float32)})
    check(session, frame(23), 0)


@pytest.mark.parametrize("first", ["cpu", "opencl"])
def test_code_of_the_host_and_kernels_read_one_weight(device: Device, first: str) -> None:
    if not device.memory_kind().importable:
        pytest.skip(f"{device} keeps a copy of imported memory")
    proto = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[4,256] x) => (float[4,256] y) {
            [one] a = Add(x, b)  [two] c = Softmax(a)  [three] y = Mul(c, b) }"""
    )
    proto.graph.initializer.append(numpy_helper.from_array(np.ones((4, 256), np.float32), "b"))
    targets = {"cpu": Target("llvm"), "opencl": Target.from_device(device)}
    ordered = {name: targets[name] for name in sorted(targets, key=lambda name: name != first)}
    places = {"one": "cpu", "two": "cpu", "three": "opencl"}
    executable = lb.compile(proto, ordered, place=places, mutable=("b",))
    session, shared = lb.Session(executable, devices={"cpu": "cpu", "opencl": device}), frame(30)
    session.set_params({"b": shared}, copy=False)
    x = frame(31)
    for seed in (1, 2):
        shared[:] = frame(seed)
        with lb.ledger() as moves:
            found = np.asarray(session(x)[0].to_device("cpu"))
        assert all(move.cause == "to_device" for move in moves)
        exponents = np.exp(x + shared)
        np.testing.assert_allclose(found, exponents / exponents.sum(1, keepdims=True) * shared, rtol=1e-4, atol=1e-6)
    with pytest.raises(ZeroCopyError, match="parameter 'b'"):
        session.set_params({"b": lb.empty(SHAPE, dtype="float32", device="sim:lazy")}, copy=False)
