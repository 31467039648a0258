"""Placed programs run on a device with such memory, and give what an independent runtime gives."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.passes.place.scopes import SHAPE, network

import landbridge as lb
from landbridge.errors import BindError

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


def test_what_crosses_is_listed(expected):
    moved = run({"x": "npu@global.vtcm[1]", "sigmoid": "npu@global.vtcm[3]"}, expected)
    assert [cause for cause, _ in moved] == ["to_vdevice", "to_vdevice"]


def test_weights_lie_in_a_scratchpad(expected):
    moved = run({"w1": "npu@global.vtcm[1]", "w2": "npu@global.scratch"}, expected)
    assert {cause for cause, _ in moved} <= {"kernel:reorder"}  # layouts change; no weight is carried in a run


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
