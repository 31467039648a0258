"""Too little memory is told before any is taken: by the system, the process's limit, and control groups."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.errors import OutOfMemoryError
from landbridge.process import available_memory

LIMIT = 300


def large() -> ModelProto:
    """Two products of a large matrix, so that the values between take 64 MiB, and weights 4 MiB."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (16384, 1024)) for name in "xy")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["t"]), helper.make_node("MatMul", ["t", "w"], ["y"])]
    weights = numpy_helper.from_array(np.ones((1024, 1024), np.float32), "w")
    graph = helper.make_graph(nodes, "large", [x], [y], [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_session_says_what_it_needs_and_what_there_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    executable = lb.compile(large())
    (report,) = [each for each in executable.memory if each.planned_bytes]
    file = tmp_path / "meminfo"
    file.write_text("MemTotal: 900000 kB\nMemAvailable: 30000 kB\nSwapFree: 5000 kB\nHugePages_Total: 0\n")
    monkeypatch.setattr(available_memory, "_MEMORY", file)
    with lb.ledger() as moves, pytest.raises(OutOfMemoryError) as reported:
        lb.Session(executable)
    assert f"{report.planned_bytes:,} bytes for activations" in str(
        reported.value
    ) and "35,840,000 are available" in str(reported.value)
    assert f"MemAvailable and SwapFree of {file}" in str(reported.value) and not moves
    file.write_text("MemAvailable: 3000000 kB\n")
    lb.Session(executable)
    file.unlink()
    lb.Session(executable)


def test_what_control_groups_leave(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    inner = tmp_path / "mount/outer/inner"
    inner.mkdir(parents=True)
    (tmp_path / "groups").write_text("4:cpu:/elsewhere\n0::/outer/inner\n")
    for folder, most in ((inner, "max"), (inner.parent, str(100 << 20))):
        (folder / "memory.max").write_text(f"{most}\n")
        (folder / "memory.current").write_text(f"{90 << 20}\n")
        (folder / "memory.stat").write_text(f"anon 5\nactive_file {10 << 20}\ninactive_file {20 << 20}\n")
    monkeypatch.setattr(available_memory, "_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(available_memory, "_MOUNT", tmp_path / "mount")
    available_memory.check_available(40 << 20, "this", "do that")
    with pytest.raises(
        OutOfMemoryError, match=r"this needs 41,943,041 .* 41,943,040 are available .*group outer\); do"
    ):
        available_memory.check_available((40 << 20) + 1, "this", "do that")
    available_memory.check_available(1 << 40, "this", "do that", mapped=True)


def test_a_limit_of_the_process_ends_neither_load_nor_session_in_a_crash(tmp_path: Path) -> None:
    lb.compile(large()).save(tmp_path / "large.lbx")
    code = """
import resource, sys
import landbridge as lb
program = lb.load(sys.argv[1])
lb.Session
taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (60 << 20),) * 2)
try:
    lb.Session(program, num_threads=1)
except lb.OutOfMemoryError as error:
    print(error)
"""
    command = [sys.executable, "-c", code, str(tmp_path / "large.lbx")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0 and "RLIMIT_AS, as ulimit -v sets it" in done.stdout, done.stderr


def test_weights_that_cannot_be_mapped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 4096)) for name in "xy")
    weights = numpy_helper.from_array(np.ones((4096, 4096), np.float32), "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "wide", [x], [y], [weights])
    lb.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)).save(
        tmp_path / "wide.lbx"
    )
    limits = (1 << 20, 1 << 20)
    monkeypatch.setattr(available_memory.resource, "getrlimit", lambda _: limits)
    for mapped in (True, False):
        with pytest.raises(OutOfMemoryError, match=r"loading .*wide.lbx \(67,108,864 bytes of weights\) needs"):
            lb.load(tmp_path / "wide.lbx", mapped=mapped)
