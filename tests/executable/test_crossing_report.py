"""A program says what its tensors cross: which are seen in place, which are copied, and why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from onnx import TensorProto, helper

import landbridge as lb
from tests.cli.command_line import invoke

BYTES = 4 * 64
GLOBAL = {"scope": "global", "host_access": "read_write", "coherent": False, "coherence_granule": 64, "pinned": True}
#: What a target states of its memory, and why what its device makes is copied; empty where it is not.
MEMORY = {
    "lent": ({}, ""),
    "hidden": ({"host_access": "none"}, "the host cannot use it in place: host_access is none"),
    "uncached": ({"cached": False}, "past the host's caches"),
    "movable": ({"pinned": False}, "neither coherent nor pinned"),
}


def compiled(last: str = "Tanh", **memory: object) -> lb.Executable:
    """The CPU, the device and the CPU, one kernel each; a MatMul at the end is by itself."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="first"),
        helper.make_node("Exp", ["a"], ["b"], name="middle"),
        helper.make_node(last, ["b"] * (1 + (last == "MatMul")), ["y"], name="last"),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (8, 8)) for name in "xy")
    proto = helper.make_model(helper.make_graph(nodes, "net", [x], [y]), ir_version=8)
    npu = {"kind": "opencl", "shares": [], "memory": [GLOBAL | memory]}
    return lb.compile(proto, {"cpu": "llvm -mcpu=x86-64-v3", "npu": npu}, place={"middle": "npu"})


@pytest.mark.parametrize(
    ("read", "write", "views"),
    [(1, 1, (True, True)), (3, 1, (True, False)), (1, 3, (False, True)), (3, 3, (False, False))],
)
def test_bandwidths_decide_past_the_hosts_caches(read: int, write: int, views: tuple[bool, bool]) -> None:
    """A byte takes ``read`` and ``write`` units of time, and 2 to be copied: each crossing has the lesser.

    The crossing to the device is written by the CPU, that to the CPU is read.
    """
    rates = {"host_read_bandwidth": 6000 // read, "host_write_bandwidth": 6000 // write, "copy_bandwidth": 3000}
    there, back = compiled(cached=False, **rates).crossings
    assert (there.is_view, back.is_view) == views
    assert all(c.is_view or "by its bandwidths" in c.why for c in (there, back))


def test_each_load_of_a_kernel_past_the_hosts_caches_counts() -> None:
    """A product with itself makes 16 loads of each of 8 x 8 elements: 4000 bytes a second are as 250 of a copy."""
    rates = {"host_read_bandwidth": 4000, "host_write_bandwidth": 4000}
    for cheap, copy_bandwidth in ((True, 100), (False, 1000)):
        _, back = compiled("MatMul", cached=False, copy_bandwidth=copy_bandwidth, **rates).crossings
        assert back.is_view == cheap


@pytest.mark.parametrize("name", MEMORY)
def test_each_crossing_says_why(name: str, tmp_path: Path) -> None:
    memory, why = MEMORY[name]
    compiled(**memory).save(tmp_path / "net.lbx")
    there, back = lb.load(tmp_path / "net.lbx").crossings
    assert (there.to.name, back.to.name, there.nbytes, back.nbytes) == ("npu", "cpu", BYTES, BYTES)
    assert there.is_view == back.is_view == (not why)
    assert all((why or "works in memory of npu") in crossing.why for crossing in (there, back))


def test_the_command_plan_lists_them(tmp_path: Path) -> None:
    file = tmp_path / "net.lbx"
    compiled(cached=False).save(file)
    done = invoke(["plan", str(file), "--json"])
    assert [(c["to"], c["how"]) for c in json.loads(done.stdout)["crossings"]] == [("npu", "copy"), ("cpu", "copy")]
    assert "past the host's caches" in invoke(["plan", str(file)], env={"COLUMNS": "400"}).stdout


def test_the_pictures_of_a_plan_show_what_is_borrowed(tmp_path: Path) -> None:
    """Tensors of the CPU's kernels that lie in a device's memory are blocks there."""
    file = tmp_path / "net.lbx"
    compiled().save(file)
    done = invoke(["plan", str(file), "--svg", str(tmp_path / "a.svg"), "--html", str(tmp_path / "a.html")])
    assert done.exit_code == 0, done.output
    for picture in ("a.svg", "a.html"):
        text = (tmp_path / picture).read_text()
        assert "npu" in text and "first" in text and "middle" in text
    arenas = json.loads(invoke(["plan", str(file), "--json"]).stdout)["scopes"]
    assert [(arena["device"], arena["peak"]) for arena in arenas] == [
        ("npu", BYTES)
    ]  # the second kernel works in place
