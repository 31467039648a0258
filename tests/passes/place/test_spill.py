"""Spill: a scope keeps what fits, the rest goes where it was told to."""

from __future__ import annotations

import numpy as np
import pytest
from tests.passes.place.scopes import network, target
from tests.passes.place.test_place import scopes_in
from tests.passes.place.test_run import DEVICE, TOLERANCE, X

import landbridge as lb
from landbridge.errors import PlacementError
from landbridge.executable.instructions import AllocStorage, LoadConstant

PLACES = dict.fromkeys(("conv", "relu", "conv2"), "npu@global.fast")
UNFUSED = PLACES | {"relu": "npu"}  # not fused: conv and conv2 are two tensors in the scratchpad, each read twice


def compiled(capacity: int, spill=None, places=PLACES, scope="global.fast"):
    facts = {scope: {"capacity": capacity}}
    return lb.compile(network(), {"npu": target(**facts)}, place=places, spill=spill)


def test_without_a_spill_scope_too_little_is_an_error():
    with pytest.raises(PlacementError, match=r"scope 'global.fast' of vdevice 'npu' is too small"):
        compiled(4096)


@pytest.mark.sample(2)
@pytest.mark.parametrize("capacity", [0, 4096, 8192, 1 << 14])
def test_what_does_not_fit_goes_where_it_was_reported(capacity):
    exe = compiled(capacity, {"global.fast": "global"})
    planned = {exe.vdevices[i.vdevice].scope: i.nbytes for i in exe.main.instructions if isinstance(i, AllocStorage)}
    assert planned.get("global.fast", 0) <= capacity
    retained = [name for name, scope in scopes_in(exe).items() if scope == "global.fast"]
    everything = [name for name, scope in scopes_in(compiled(1 << 16)).items() if scope == "global.fast"]
    assert bool(retained) == (capacity > 0)
    assert (set(retained) == set(everything)) == (capacity >= 8192)  # two tensors of 4096 bytes, in use together


def test_rows_spill_to_flat_memory():
    places = {"conv": "npu@global.rows[2]", "relu": "npu@global.fast"}
    exe = compiled(1024, {"global.rows": "global"}, places, "global.rows")
    assert scopes_in(exe)["conv"] == "global"
    assert not [i for i in exe.main.instructions if isinstance(i, AllocStorage) and i.shape]


def test_weights_spill_too():
    places = dict.fromkeys(("w1", "w2"), "npu@global.fast")
    exe = compiled(10_000, {"global.fast": "global"}, places)
    loaded = [exe.vdevices[i.vdevice].scope for i in exe.main.instructions if isinstance(i, LoadConstant)]
    assert sorted(loaded) == ["global", "global.fast"]  # of 9216 bytes each


def test_a_weight_in_rows_spills_to_flat_memory():
    exe = compiled(1024, {"global.rows": "global"}, {"w1": "npu@global.rows[1]"}, "global.rows")
    assert {exe.vdevices[i.vdevice].scope for i in exe.main.instructions if isinstance(i, LoadConstant)} == {"global"}
    assert not any(i.axis_separators for i in exe.main.instructions if isinstance(i, LoadConstant))


@pytest.mark.parametrize(
    ("spill", "message"),
    [
        ({"global.fats": "global"}, "no target describes 'global.fats'"),
        ({"global.fast": "global.rows"}, "no target describes 'global.rows' as flat memory"),
        ({"global.fast": "global.fast"}, "leads to itself"),
    ],
)
def test_a_spill_that_cannot_be_is_refused(spill, message):
    with pytest.raises(PlacementError, match=message):
        compiled(1 << 16, spill)


def test_a_spilled_program_gives_the_same_result():
    described = lb.Target.from_device(lb.device(DEVICE), "llvm").to_dict()
    for kind in described["memory"]:
        if kind["scope"] in ("global.scratch", "global.vtcm"):
            kind["capacity"] = 4096
    places = {"conv": "npu@global.scratch", "relu": "npu@global.vtcm[2]", "conv2": "npu@global.scratch"}
    spill = {"global.scratch": "global", "global.vtcm": "global.scratch"}
    exe = lb.compile(network(), {"npu": lb.Target(described)}, place=places, spill=spill)
    whole = lb.compile(network(), {"npu": lb.Target.from_device(lb.device(DEVICE), "llvm")}, place=places)
    results = []
    for program in (exe, whole):
        session = lb.Session(program, device=DEVICE)
        session.set_input("x", X)
        session.run()
        with session.get_output(0).host_view("r") as y:
            results.append(np.array(y))
    assert np.abs(results[0] - results[1]).max() <= TOLERANCE
