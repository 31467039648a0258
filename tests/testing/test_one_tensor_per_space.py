"""Programs for a device that refuses a launch which would read and write one space: no two tensors share one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.errors import BindError, CompileError, InputError
from landbridge.executable.instructions import storages
from tests.testing.admitted import admitted
from tests.testing.honest_devices import OneTensorPerSpace

X = np.linspace(-2, 2, 64, dtype=np.float32).reshape(4, 16)


def network(rows: int | str = 4) -> ModelProto:
    """Products that no kernel joins, sums that could be in place, and a concatenation of what is read again."""
    shapes = {"x": (rows, 16), "y": (rows, 16), "z": (None, 16)}
    x, y, z = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items())
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("MatMul", ["a", "w"], ["b"]),
        helper.make_node("MatMul", ["b", "w"], ["c"]),
        helper.make_node("Concat", ["b", "c"], ["z"], axis=0),
        helper.make_node("Softmax", ["c"], ["d"]),
        helper.make_node("MatMul", ["d", "w"], ["e"]),
        helper.make_node("Neg", ["e"], ["y"]),
    ]
    w = numpy_helper.from_array(np.eye(16, dtype=np.float32)[::-1].copy() / 2, "w")
    graph = helper.make_graph(nodes, "chain", [x], [y, z], [w])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def reference(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    w = np.eye(16, dtype=np.float32)[::-1] / 2
    b = x @ w @ w
    c = b @ w
    powers = np.exp(c - c.max(-1, keepdims=True))
    return -(powers / powers.sum(-1, keepdims=True) @ w), np.concatenate([b, c])


@pytest.fixture
def device() -> Iterator[lb.Device]:
    with admitted(OneTensorPerSpace()):
        yield lb.device("mutant")


def run(device: lb.Device, exe: lb.Executable, x: np.ndarray) -> tuple[np.ndarray, ...]:
    session = lb.Session(exe, device=device)
    session.set_input("x", x)
    session.run()
    return tuple(np.asarray(session.get_output(name).to_device("cpu")) for name in ("y", "z"))


def test_each_launch_gets_spaces_of_its_own(device: lb.Device) -> None:
    exe = lb.compile(network(), lb.Target.from_device(device))
    for found, wanted in zip(run(device, exe, X), reference(X), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    spaces = list(storages(exe.main.instructions))
    assert 1 < len(spaces) < 6  # lives that do not overlap share a space


def test_sizes_that_a_run_decides(device: lb.Device) -> None:
    exe = lb.compile(network("rows"), lb.Target.from_device(device), dims={"rows": "1..4"})
    for rows in (3, 1, 4):
        for found, wanted in zip(run(device, exe, X[:rows]), reference(X[:rows]), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_a_program_for_shared_spaces_is_refused_when_it_is_bound(device: lb.Device) -> None:
    target = lb.Target.from_device(device).to_dict()
    for kind in target["memory"]:
        kind["one_tensor_per_space"] = False
    exe = lb.compile(network(), lb.Target(target))
    with pytest.raises(BindError, match="one_tensor_per_space is True, the target states False"):
        lb.Session(exe, device=device)
    unchecked = lb.compile(network(), lb.Target(target), on_mismatch="copy")
    with pytest.raises(InputError, match="whose launches take no allocation twice"):
        run(device, unchecked, X)


def test_arguments_of_one_allocation_are_refused_before_anything_runs(device: lb.Device) -> None:
    shared = lb.empty((8, 16), dtype="float32", device=device).storage
    x_in_it, y_in_it = (lb.Tensor(shared, "float32", (4, 16), None, offset) for offset in (0, 256))
    session = lb.Session(lb.compile(network(), lb.Target.from_device(device)), device=device)
    session.set_input_zero_copy("x", x_in_it)
    session.set_output_zero_copy("y", y_in_it)
    session.run()  # no launch takes both
    one = helper.make_node("Neg", ["x"], ["y"])
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (4, 16)) for name in "xy")
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(helper.make_graph([one], "neg", [x], [y]), opset_imports=opset, ir_version=8)
    session = lb.Session(lb.compile(model, lb.Target.from_device(device)), device=device)
    session.set_input_zero_copy("x", x_in_it)
    session.set_output_zero_copy("y", y_in_it)
    with pytest.raises(InputError, match=r"in one allocation of mutant:0.*bind Tensors that share no memory"):
        session.run()
    with pytest.raises(CompileError, match="launches take no space twice"):
        lb.compile(model, lb.Target.from_device(device), alias={"y": "x"})
