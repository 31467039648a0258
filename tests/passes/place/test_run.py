"""Placed programs run on a device with such memory, and give what an independent runtime gives."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from tests.frontend.models import model, value
from tests.passes.place.scopes import SHAPE, network

import landbridge as lb
from landbridge.device.api import Device
from landbridge.errors import BindError
from landbridge.memory.allocators.naive import NaiveAllocator
from landbridge.memory.allocators.pooled import PooledAllocator
from landbridge.testing.sim_scratch import SimScratchDeviceAPI

DEVICE = "sim:scratch"
X = np.random.default_rng(1).standard_normal(SHAPE, dtype=np.float32)
#: Outputs are below 1, products of sums of 144 terms: 20 roundings of the largest.
TOLERANCE = 20 * np.finfo(np.float32).eps


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    session = onnxruntime.InferenceSession(network().SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": X})[0]


def run(places, expected, kind="llvm") -> list[tuple[str, str]]:
    """Causes and tensors of what a run moved, its result compared."""
    target = lb.Target.from_device(lb.device(DEVICE), kind)
    session = lb.Session(lb.compile(network(), {"npu": target}, place=places), device=DEVICE)
    session.set_input("x", X)
    with lb.ledger() as moves:
        session.run()
    with session.get_output(0).host_view("r") as y:
        assert np.abs(y - expected).max() <= TOLERANCE
    assert not lb.device(DEVICE).api.violations
    return [(move.cause, move.tensor) for move in moves]


@pytest.mark.parametrize("kind", ["llvm", "c"])
def test_kernels_work_in_the_scratchpad_without_staging(kind, expected):
    assert run({"relu": "npu@global.vtcm[2]", "conv2": "npu@global.pitched[3]"}, expected, kind) == []


@pytest.mark.parametrize("kind", ["llvm", "c"])
def test_a_blocked_layout_lies_in_rows(kind, expected):
    """No kernel reorders what lies there: those at input and output are there without a placement too."""
    places = {"relu": "npu@global.vtcm[blocked]", "conv2": "npu@global.pitched[blocked]"}
    flat = run({}, expected, kind)
    assert [tensor for _, tensor in flat] == ["pack", "unpack"]
    assert run(places, expected, kind) == flat


@given(
    st.tuples(st.integers(1, 2), st.sampled_from((3, 8, 16, 20)), st.integers(1, 6), st.integers(1, 6)),
    st.sets(st.sampled_from(("x", "conv", "relu", "conv2", "add", "sigmoid", "w1", "w2")), min_size=1),
    st.sampled_from(("global.vtcm", "global.pitched")),
)
@settings(max_examples=25, deadline=None)
def test_any_nodes_in_rows_that_the_compiler_chooses(shape, where, scope):
    target = lb.Target.from_device(lb.device(DEVICE), "llvm")
    places = dict.fromkeys(sorted(where), f"npu@{scope}[blocked]")
    x = np.random.default_rng(3).standard_normal(shape, dtype=np.float32)
    results = []
    for placed in (places, {}):
        session = lb.Session(lb.compile(network(shape), {"npu": target}, place=placed), device=DEVICE)
        session.set_input("x", x)
        session.run()
        results.append(np.array(session.get_output(0)))
        del session
    # sums of 9 * shape[1] products in another order, in two layers, of values near 1
    np.testing.assert_allclose(results[0], results[1], rtol=0, atol=TOLERANCE)


def test_what_crosses_is_listed(expected):
    moved = run({"x": "npu@global.vtcm[1]", "sigmoid": "npu@global.vtcm[3]"}, expected)
    assert [cause for cause, _ in moved] == ["to_vdevice"]  # of the output: x was copied by set_input


@pytest.fixture(scope="module")
def bound_in_the_scratchpad() -> lb.Executable:
    target = lb.Target.from_device(lb.device(DEVICE), "llvm")
    return lb.compile(network(), {"npu": target}, place=dict.fromkeys("xy", "npu@global.scratch"))


def test_what_lies_in_the_scratchpad_is_bound_without_a_copy(bound_in_the_scratchpad, expected):
    session = lb.Session(bound_in_the_scratchpad, device=DEVICE)
    x = lb.asarray(X).to_device(DEVICE, scope="global.scratch")
    y = lb.empty(SHAPE, dtype="float32", device=DEVICE, scope="global.scratch")
    with lb.no_copies():
        session.set_input_zero_copy("x", x)
        session.set_output_zero_copy("y", y)
        session.run()
    assert np.abs(np.asarray(y) - expected).max() <= TOLERANCE
    with lb.no_copies():
        (again,) = session(x)
    assert again.scope == "global.scratch"
    assert np.abs(np.asarray(again) - expected).max() <= TOLERANCE


def test_the_sessions_own_inputs_and_outputs_lie_there_too(bound_in_the_scratchpad, expected):
    session = lb.Session(bound_in_the_scratchpad, device=DEVICE)
    with lb.ledger() as moves:
        session.set_input("x", X)
        session.run()
    assert [move.cause for move in moves if move.cause != "kernel:reorder"] == ["set_input"]
    assert session.get_input("x").scope == session.get_output("y").scope == "global.scratch"
    planned = {found.scope: (found.input_bytes, found.output_bytes) for found in session.planned_memory}
    assert planned == {"global": (0, 0), "global.scratch": (4096, 4096)}
    copied = np.empty(SHAPE, np.float32)
    session.get_output("y", copied)
    assert np.abs(copied - expected).max() <= TOLERANCE


@pytest.mark.parametrize("elsewhere", [X, lb.asarray(X), lb.asarray(X).to_device(DEVICE)])
def test_what_lies_elsewhere_is_refused_by_reference(bound_in_the_scratchpad, elsewhere):
    session = lb.Session(bound_in_the_scratchpad, device=DEVICE)
    way_out = r"pass tensor.to_device\('sim:scratch:0', scope='global.scratch'\), or let set_input copy it"
    with pytest.raises(lb.ZeroCopyError, match=rf"is not in memory 'global.scratch' of sim:scratch:0; {way_out}"):
        session.set_input_zero_copy("x", elsewhere)
    with pytest.raises(lb.ZeroCopyError, match=way_out):
        session(elsewhere)


def test_a_tensor_with_gaps_is_refused(bound_in_the_scratchpad):
    session = lb.Session(bound_in_the_scratchpad, device=DEVICE)
    wide = lb.empty((1, 16, 8, 16), dtype="float32", device=DEVICE, scope="global.scratch")
    gaps = lb.Tensor(wide.storage, "float32", SHAPE, (2048, 128, 16, 2))
    with pytest.raises(lb.ZeroCopyError, match="not C-contiguous"):
        session.set_input_zero_copy("x", gaps)


def test_a_saved_program_knows_where_they_lie(bound_in_the_scratchpad, tmp_path):
    bound_in_the_scratchpad.save(tmp_path / "placed.lbx")
    assert lb.load(tmp_path / "placed.lbx").main == bound_in_the_scratchpad.main


def test_weights_lie_in_a_scratchpad(expected):
    api = SimScratchDeviceAPI()
    device = Device(api, 0)
    target = lb.Target.from_device(device, "llvm")
    places = {"w1": "npu@global.vtcm[1]", "w2": "npu@global.scratch"}
    exe = lb.compile(network(), {"npu": target}, place=places)
    with lb.ledger() as bound:
        session = lb.Session(exe, device=device, memory_cfg="naive")
    nbytes = 16 * 16 * 9 * 4
    assert [(move.cause, move.nbytes) for move in bound] == [("constants:bind", nbytes)] * 2
    assert api.used_bytes("global.scratch") == nbytes
    assert api.used_bytes("global.vtcm") == 16 * 640  # rows of 576 bytes
    session.set_input("x", X)
    with lb.ledger() as moves:
        session.run()
    assert {move.cause for move in moves} <= {"kernel:reorder"}  # layouts change; no weight is carried in a run
    assert np.abs(np.asarray(session.get_output(0)) - expected).max() <= TOLERANCE


def test_weights_and_planned_tensors_take_exactly_what_was_counted(expected):
    """A capacity of just these bytes is enough to compile for, and to bind."""
    described = lb.Target.from_device(lb.device(DEVICE), "llvm").to_dict()
    for kind in described["memory"]:
        if kind["scope"] == "global.scratch":
            kind["capacity"] = 2 * 9216 + 4096
    places = dict.fromkeys(("w1", "w2", "relu"), "npu@global.scratch")
    exe = lb.compile(network(), {"npu": lb.Target(described)}, place=places)
    device = lb.device(DEVICE)
    granule = device.memory_kind("global.scratch").block_granule
    pool = PooledAllocator(NaiveAllocator(device, "global.scratch"), granule=granule)
    session = lb.Session(exe, device=device, memory_cfg={(DEVICE, "global.scratch"): pool})
    assert pool.state.reserved_bytes == pool.state.used_bytes == 2 * 9216 + 4096
    (result,) = session(X)
    assert np.abs(np.asarray(result) - expected).max() <= TOLERANCE


def test_a_device_with_space_for_planned_tensors_or_weights_alone_is_refused():
    described = lb.Target.from_device(lb.device(DEVICE), "llvm").to_dict()
    for kind in described["memory"]:
        kind.pop("capacity", None)
    wide = np.zeros((2048, 16), np.float32)
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"], name="gemm"),
        helper.make_node("Relu", ["h"], ["y"], name="relu"),
    ]
    net = model(nodes, [value("x", (4, 2048))], [value("y", (4, 16))], {"w": wide, "b": np.zeros(16, np.float32)})
    exe = lb.compile(net, {"npu": lb.Target(described)}, place={"w": "npu@global.scratch"})
    with pytest.raises(BindError, match=r"needs 131072 bytes of memory 'global.scratch' .* at most 65536"):
        lb.Session(exe, device=DEVICE)


# Rows of one element would take 128 bytes each of the scratchpad, more than it has: they are left out.
PLACES = st.sampled_from(["npu@global.scratch", "npu@global.pitched[3]", *(f"npu@global.vtcm[{i}]" for i in range(4))])
NODES = st.sampled_from(["conv", "relu", "conv2", "add", "sigmoid", "x"])


@settings(max_examples=10)
@given(places=st.dictionaries(NODES, PLACES))
def test_any_placement_gives_the_same_result(expected, places):
    run(places, expected)


def test_a_device_with_less_is_refused_by_name():
    target = lb.Target.from_device(lb.device(DEVICE), "llvm")
    exe = lb.compile(network(), {"npu": target}, place={"relu": "npu@global.vtcm[2]"})
    with pytest.raises(BindError, match=r"conv.relu.*'global.vtcm'"):
        lb.Session(exe, device="cpu")
