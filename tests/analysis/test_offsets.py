"""Parts of concatenations and slices that begin where kernels of a device cannot be given memory."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from tests.devices.present import first_instance

import landbridge as lb
from landbridge.dtypes import dtype
from landbridge.executable.executable import Executable
from landbridge.executable.instructions import AllocTensor, Call, View

RNG = np.random.default_rng(3)
A, B = RNG.normal(0, 1, (2, 1, 3, 5)).astype(np.float32)
WEIGHT = RNG.normal(0, 1, (5, 6)).astype(np.float32)


def network() -> ModelProto:
    """``y = concat(softmax(a), softmax(b))``; ``z = y[:, 1:4] @ w``: parts begin after 60 bytes, the slice after 20."""
    value = helper.make_tensor_value_info
    inputs = [value(name, TensorProto.FLOAT, (1, 3, 5)) for name in "ab"]
    outputs = [value("y", TensorProto.FLOAT, (1, 6, 5)), value("z", TensorProto.FLOAT, (1, 3, 6))]
    ints = {"from": [1], "to": [4], "axis": [1]}
    constants = [numpy_helper.from_array(np.array(v, np.int64), name) for name, v in ints.items()]
    nodes = [
        helper.make_node("Softmax", ["a"], ["sa"], name="sa", axis=1),
        helper.make_node("Softmax", ["b"], ["sb"], name="sb", axis=1),
        helper.make_node("Concat", ["sa", "sb"], ["y"], name="cat", axis=1),
        helper.make_node("Slice", ["y", "from", "to", "axis"], ["s"], name="cut"),
        helper.make_node("MatMul", ["s", "w"], ["z"], name="mul"),
    ]
    graph = helper.make_graph(nodes, "g", inputs, outputs, [*constants, numpy_helper.from_array(WEIGHT, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def expected() -> tuple[np.ndarray, np.ndarray]:
    def softmax(x: np.ndarray) -> np.ndarray:
        e = np.exp(x.astype(np.float64))
        return e / e.sum(1, keepdims=True)

    y = np.concatenate([softmax(A), softmax(B)], 1)
    return y, y[:, 1:4] @ WEIGHT


def offsets_of_arguments(exe: Executable) -> set[int]:
    """The byte offsets, within outputs, inputs and storages, at which kernels are given memory."""
    at: dict[int, int] = {}
    found: set[int] = set()
    for instruction in exe.main.instructions:
        if isinstance(instruction, AllocTensor):
            at[instruction.dst] = instruction.offset
        elif isinstance(instruction, View):
            at[instruction.dst] = at.get(instruction.src, 0) + instruction.offset
        elif isinstance(instruction, Call):
            found |= {at.get(register, 0) for register in instruction.args}
    return found


def aligned(alignment: int) -> lb.Target:
    kind = {**lb.Target("llvm").to_dict()["memory"][0], "offset_alignment": alignment}
    return lb.Target({"kind": "llvm", "memory": [kind]})


def test_everything_is_in_place_where_offsets_are_free() -> None:
    offsets = offsets_of_arguments(lb.compile(network()))
    assert {60, 20} <= offsets
    assert all(offset % dtype("float32").itemsize == 0 for offset in offsets)


@pytest.mark.parametrize("alignment", [64, 128, 4096])
def test_offsets_are_multiples_of_what_the_target_states(alignment: int) -> None:
    assert all(offset % alignment == 0 for offset in offsets_of_arguments(lb.compile(network(), aligned(alignment))))


@pytest.mark.parametrize("target", ["llvm", "aligned", "opencl", "both"])
def test_results_are_the_same(target: str) -> None:
    device = lb.device("cpu") if target in ("llvm", "aligned") else first_instance("opencl")
    targets = {
        "llvm": lb.Target("llvm"),
        "aligned": aligned(128),
        "opencl": lb.Target.from_device(device) if device.name == "opencl" else None,
    }
    if target == "both":  # what one device produces in memory of the host, the other is given in place
        mixed = {"npu": targets["opencl"], "cpu": "llvm"}
        session = lb.Session(lb.compile(network(), mixed, place={"s*": "cpu"}), devices={"npu": device})
    else:
        session = lb.Session(lb.compile(network(), targets[target]), device=device)
    session.set_input("a", A)
    session.set_input("b", B)
    session.run()
    for number, wanted in enumerate(expected()):
        with session.get_output(number).host_view("r") as found:
            # sums of 3 and of 5 terms below 1 and 3: a few roundings of the largest
            assert np.abs(found - wanted).max() < 8 * np.finfo(np.float32).eps * np.abs(wanted).max()
