"""Parts of concatenations and slices that begin where kernels of a device cannot be given memory."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from tests.devices.present import first_instance

import landbridge as lb
from landbridge.analysis.offsets import may_begin, offset_alignment
from landbridge.dtypes import dtype
from landbridge.executable.executable import Executable
from landbridge.executable.instructions import AllocTensor, Call, View
from landbridge.executable.parts import VDevice
from landbridge.ir.module import IRModule

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


@pytest.mark.sample(2)
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


#: Values that begin in the middle of memory of the CPU, and whether a GPU that wants multiples of 64 bytes uses it.
BEGINNINGS = {
    "nobody else": ("%a", "", True),
    "the GPU has it": ("%a", '%c = "lb.to_vdevice"(%a) {view} : (!cpu) -> !gpu', False),
    "the GPU has a copy": ("%a", '%c = "lb.to_vdevice"(%a) : (!cpu) -> !gpu', True),
    "the GPU has a view of a view": (
        "%a",
        """%v = "lb.view"(%a) {offset = 0 : i64} : (!cpu) -> !cpu
        %w = "lb.view"(%v) {offset = 0 : i64} : (!cpu) -> !cpu
        %c = "lb.to_vdevice"(%w) {view} : (!cpu) -> !gpu""",
        False,
    ),
    "it is the GPU's": ("%c", '%c = "lb.to_vdevice"(%g) {view} : (!gpu) -> !cpu', False),
    "it is a copy of the GPU's": ("%c", '%c = "lb.to_vdevice"(%g) : (!gpu) -> !cpu', True),
}


@pytest.mark.parametrize("case", BEGINNINGS)
def test_where_a_tensor_may_begin_that_another_device_uses_in_place(case: str) -> None:
    name, body, anywhere = BEGINNINGS[case]
    text = f"""
      !gpu = tensor<64xf32, #lb.vdevice<0, "global">>
      !cpu = tensor<64xf32, #lb.vdevice<1, "global">>
      func.func @main(%g: !gpu, %a: !cpu) {{
        {body}
        func.return
      }}"""
    kind = {**lb.Target("opencl").to_dict()["memory"][0], "offset_alignment": 64, "coherence_granule": 16}
    targets = lb.Target({"kind": "opencl", "memory": [kind]}), lb.Target("llvm")
    module = IRModule.parse(text, targets, (VDevice("opencl", 0), VDevice("cpu", 1)))
    values = {v.name_hint: v for op in module.main.walk() for v in (*op.results, *module.main.body.block.args)}
    assert may_begin(module, values[name[1:]], 1) == anywhere
    assert may_begin(module, values[name[1:]], 16)  # byte 64
    assert may_begin(module, values["g"], 16) and not may_begin(module, values["g"], 1)


def test_offsets_in_shared_memory_are_multiples_of_what_all_its_users_want() -> None:
    """Of the granule of barriers too, which must not touch a neighbour; other memory does not count."""
    kinds = [
        {"scope": "global", "host_access": "read_write", "coherent": False, "offset_alignment": 32},
        {"scope": "global.fast", "host_access": "read_write", "coherent": True, "offset_alignment": 512},
        {"scope": "global.rows", "host_access": "none", "coherent": True, "offset_alignment": 256, "ndim": 2},
    ]
    kinds[0]["coherence_granule"] = 128
    guest = lb.Target({"kind": "opencl", "memory": kinds, "shares": [["cpu", "global"]]})
    stranger = lb.Target({"kind": "opencl", "memory": [{**kinds[0], "coherence_granule": 4096}], "shares": []})
    text = "func.func @main() { func.return }"
    names = [VDevice("cpu", 0), VDevice("opencl", 1), VDevice("opencl", 2)]
    module = IRModule.parse(text, (lb.Target("llvm"), guest, stranger), tuple(names))
    assert offset_alignment(module, 0, "global", shared=True) == 128
    assert offset_alignment(module, 0, "global", shared=False) == 1
    assert offset_alignment(module, 1, "global", shared=False) == 32
    assert offset_alignment(module, 1, "global.fast", shared=False) == 512
    assert offset_alignment(module, 1, "global.rows", shared=False) == 1  # rows begin by the row
