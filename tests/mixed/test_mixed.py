"""A device and the CPU run one program: where kernels go, what crosses, and that shared memory is not copied."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

import landbridge as lb
from landbridge.device.api import Device
from landbridge.errors import BindError, FallbackWarning
from landbridge.executable.instructions import Call, ToVDevice, View
from tests.cli.command_line import invoke
from tests.devices.present import first_instance
from tests.frontend.models import model, value
from tests.passes.place.scopes import SHAPE, network

X = np.random.default_rng(1).standard_normal(SHAPE, dtype=np.float32)
#: Outputs are below 1, products of sums of 144 terms: 20 roundings of the largest.
TOLERANCE = 20 * np.finfo(np.float32).eps


@pytest.fixture(scope="module", params=["opencl", "vulkan"])
def device(request) -> Device:
    return first_instance(request.param)


@pytest.fixture(scope="module")
def target(device) -> lb.Target:
    return lb.Target.from_device(device)


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    return reference(network(), X)


def reference(proto: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


def page_aligned(shape=SHAPE) -> np.ndarray:
    """Memory that any device which shares the host's can import."""
    tensor = lb.empty((-(-int(np.prod(shape)) * 4 // 4096) * 1024,), dtype="float32", alignment=4096)
    return np.asarray(tensor)[: int(np.prod(shape))].reshape(shape)


def run(session: lb.Session, expected: np.ndarray) -> list[tuple[str, int]]:
    """What a run on the application's own arrays copies; its result is compared."""
    x, y = page_aligned(), page_aligned()
    session.set_input_zero_copy("x", x)
    session.set_output_zero_copy(0, y)
    for scale in (1.0, 0.0, 1.0):  # each run sees what is in the frame then
        x[:] = X * np.float32(scale)
        with lb.ledger() as moves:
            session.run()
    assert np.abs(y - expected).max() <= TOLERANCE
    return [(move.cause, move.nbytes) for move in moves if not move.is_kernel]


@pytest.mark.sample(2)
@pytest.mark.parametrize("first", ["device", "cpu"])
@pytest.mark.parametrize("nodes", ["relu", "conv*", "sigmoid", "[ac]*", "*"])
def test_nothing_is_copied_where_memory_is_shared(device, target, expected, first, nodes):
    both = {"npu": target, "cpu": lb.Target("llvm")}
    targets = both if first == "device" else dict(reversed(both.items()))
    exe = lb.compile(network(), targets, place={nodes: "cpu" if first == "device" else "npu"})
    assert not [i for i in exe.main.instructions if isinstance(i, ToVDevice)]
    session = lb.Session(exe, devices={"npu": device, "cpu": "cpu"})
    assert run(session, expected) == []


NODES = ["conv", "relu", "conv2", "add", "sigmoid"]


@pytest.mark.sample(1)
@settings(max_examples=6)
@given(on_cpu=st.sets(st.sampled_from(NODES)))
def test_any_split_gives_the_same_result(device, target, expected, on_cpu):
    exe = lb.compile(network(), {"npu": target, "cpu": "llvm"}, place=dict.fromkeys(on_cpu, "cpu"))
    assert run(lb.Session(exe, devices={"npu": device}), expected) == []
    on = {node: exe.vdevices[i.vdevice].name for i in exe.main.instructions if isinstance(i, Call)
          for node in i.name.split("+")}  # fmt: skip
    assert {node for node in NODES if on[node] == "cpu"} == on_cpu


def test_what_the_device_has_no_kernel_for_runs_on_the_cpu_with_a_warning(device, target):
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="relu"),
        helper.make_node("Cast", ["r"], ["d"], name="up", to=TensorProto.DOUBLE),
        helper.make_node("ReduceSum", ["d"], ["e"], name="sum64", keepdims=1),
        helper.make_node("Cast", ["e"], ["f"], name="down", to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["x", "x"], ["m"], name="matmul"),
        helper.make_node("Mul", ["f", "m"], ["y"], name="mul"),
    ]
    proto = model(nodes, [value("x", [64, 64])], [value("y", [64, 64])])
    without = lb.Target({**target.to_dict(), "fp64": False})
    with pytest.warns(FallbackWarning, match="on the CPU, as it uses f64; target .* states fp64=0") as reported:
        exe = lb.compile(proto, without)
    assert len(reported) == 1
    kernels = [(exe.vdevices[i.vdevice].name, i.name) for i in exe.main.instructions if isinstance(i, Call)]
    assert ("cpu", "matmul") not in kernels
    assert [name for name, node in kernels if "sum64" in node] == ["cpu"]
    session = lb.Session(exe, device=device)  # the CPU needs no mention
    x = page_aligned((64, 64))
    x[:] = np.random.default_rng(2).standard_normal((64, 64))
    session.set_input_zero_copy("x", x)
    with lb.ledger() as moves:
        session.run()
    assert moves.total_bytes == sum(move.nbytes for move in moves if move.is_kernel)
    expected = reference(proto, x)
    with session.get_output(0).host_view("r") as y:
        # sums of 64 products, scaled by a sum of 4096 terms that float64 rounds by nothing that shows
        assert np.abs(y - expected).max() <= 64 * np.finfo(np.float32).eps * np.abs(expected).max()


def test_without_shared_memory_crossings_are_copies_and_counted(device, target, expected):
    hidden = [{**kind, "host_access": "none"} for kind in target.to_dict()["memory"]]
    separate = lb.Target({**target.to_dict(), "shares": [], "memory": hidden})
    exe = lb.compile(network(), {"cpu": "llvm", "npu": separate}, place={"conv": "npu"})
    assert [i.name for i in exe.main.instructions if isinstance(i, ToVDevice)] == ["input 0 to npu", "conv to cpu"]
    assert not [i for i in exe.main.instructions if isinstance(i, View) and i.name]
    moved = run(lb.Session(exe, devices={"npu": device}), expected)
    assert moved == [("to_vdevice", X.nbytes)] * 2


def test_a_program_of_two_devices_is_saved_and_loaded(device, target, expected, tmp_path: Path):
    lb.compile(network(), {"npu": target, "cpu": "llvm"}, place={"relu": "cpu"}).save(tmp_path / "mixed.lbx")
    assert run(lb.Session(lb.load(tmp_path / "mixed.lbx"), devices={"npu": device}), expected) == []


def test_the_command_says_where_kernels_ran_and_what_crossed(device, tmp_path: Path):
    onnx.save(network(), tmp_path / "net.onnx")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = invoke(["run", str(tmp_path / "net.onnx"), "--device", f"{device},cpu", "--place", "relu=cpu",
             "--repeat", "1", "--json"],
        )  # fmt: skip
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["copies"] == []
    on = {kernel["name"]: kernel["on"] for kernel in result["placement"]["kernels"]}
    assert (on["relu"], on["conv"]) == ("cpu", str(device))
    assert [(c["name"], c["how"]) for c in result["placement"]["crossings"]] == [
        ("conv to cpu", "view"),
        (f"relu to {device}", "view"),
    ]


def test_a_device_that_shares_no_memory_is_refused_by_the_name_of_the_crossing():
    """A program for shared memory, on a device that only says so: sim:lazy sees none of the host's memory."""
    kind = {"scope": "global", "host_access": "none", "coherent": False, "coherence_granule": 64}
    sharing = lb.Target({"kind": "opencl", "memory": [kind | {"offset_alignment": 64}], "shares": [["cpu", "global"]]})
    exe = lb.compile(network(), {"cpu": "llvm", "npu": sharing}, place={"conv": "npu"})
    stub = replace(exe, modules=tuple(replace(m, image=exe.modules[0].image) for m in exe.modules))
    with pytest.raises(BindError, match=r"crossing 'input 0 to npu': .* sim:lazy:0 cannot use .* cpu:0"):
        lb.Session(stub, devices={"npu": "sim:lazy", "cpu": "cpu"})
