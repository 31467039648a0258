"""Planned memory is what a run takes: as its allocator counts, and as the kernel counts for the process."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

import landbridge as lb
from landbridge.device.api import Device
from landbridge.device.registry import device
from landbridge.memory.allocators.default import default_allocator
from landbridge.memory.allocators.naive import NaiveAllocator
from landbridge.memory.allocators.pooled import PooledAllocator
from landbridge.memory.allocators.statistics import StatisticsAllocator
from landbridge.testing.sim_lazy import SimLazyDeviceAPI
from landbridge.vm.planned_memory import PlannedMemory
from tests.vm import programs
from tests.whole_models.small_models import edges, projection

CPU = device("cpu")


def counted_session(
    program: lb.Executable, where: Device = CPU, scope: str = "global"
) -> tuple[lb.Session, StatisticsAllocator]:
    counted = StatisticsAllocator(NaiveAllocator(where, scope))
    cfg = {(str(where), scope): counted}
    return lb.Session(program, device=where, num_threads=2, memory_cfg=cfg), counted


@pytest.mark.parametrize("by_value", [True, False])
@pytest.mark.parametrize("model", [edges(), projection(3, 5, 7)], ids=["convolutions", "odd sizes"])
def test_planned_is_what_the_allocator_counts(model, by_value: bool) -> None:
    session, counted = counted_session(lb.compile(model))
    value = np.zeros(session.inputs[0].shape, np.float32)
    (session.set_input if by_value else session.set_input_zero_copy)("x", value)
    session.run()
    session.run()
    (planned,) = session.planned_memory
    assert planned.allocated_bytes == counted.counters.peak_bytes == counted.counters.current_bytes
    assert planned.input_bytes == (-(-value.nbytes // 64) * 64 if by_value else 0)
    assert planned.output_bytes == -(-np.asarray(session.get_output(0)).nbytes // 64) * 64
    assert planned.activation_bytes == sum(report.planned_bytes for report in session.executable.memory)
    assert counted.counters.total_count == counted.counters.current_count  # nothing came and went


def test_kernel_scratch_is_counted_for_all_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("landbridge.vm.thread_pool.usable_cores", lambda: 3)
    nodes = [helper.make_node("Softmax", ["x"], ["y"], name="softmax", axis=-1)]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (512, 1000)) for name in "xy")
    model = helper.make_model(helper.make_graph(nodes, "rows", [x], [y]), opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    file = tmp_path / "rows.lbx"
    lb.compile(model).save(file)
    program = lb.load(file)
    assert program.scratch_bytes > 0
    one, three = (lb.Session(program, num_threads=threads).planned_memory[0].scratch_bytes for threads in (1, 3))
    assert (one, three) == (program.scratch_bytes, 3 * program.scratch_bytes)


def test_weights_copied_to_a_device_are_apart() -> None:
    where = Device(SimLazyDeviceAPI(0), 0)
    program = lb.compile(
        projection(4, 32, 32), {"npu": "llvm", "host": "llvm"}, place={"*": "host"}, on_mismatch="copy"
    )
    counted = {
        ("cpu:0", "global"): StatisticsAllocator(NaiveAllocator(CPU)),
        ("sim:lazy:0", "global"): StatisticsAllocator(PooledAllocator(NaiveAllocator(where), granule=256)),
    }
    session = lb.Session(program, devices={"npu": where, "host": "cpu"}, num_threads=1, memory_cfg=counted)
    session.set_input("x", np.ones((4, 32), np.float32))
    session.run()
    for planned in session.planned_memory:
        peak = counted[planned.device, planned.scope].counters.peak_bytes
        assert planned.allocated_bytes == peak
        assert planned.constant_bytes == 0


def test_scopes_of_a_program() -> None:
    program = programs.two_stages()
    on_shared = replace(program, vdevices=(replace(program.vdevices[0], scope="shared"),), scratch_bytes=100)
    session, counted = counted_session(on_shared, Device(SimLazyDeviceAPI(0), 0), "shared")
    assert session.planned_memory == (
        PlannedMemory("sim:lazy:0", "shared", activation_bytes=320, output_bytes=256),
        PlannedMemory("cpu:0", "global", scratch_bytes=100),
    )
    assert counted.counters.current_bytes == 320


def test_rows_count_as_the_scope_rounds_them() -> None:
    where = device("sim:scratch")
    target = lb.Target.from_device(where, "llvm")
    program = lb.compile(edges(5, 7, 3), {"npu": target}, place={"relu1": "npu@global.vtcm[3]"})
    scopes = {vdevice.scope for vdevice in program.vdevices}
    counted = {(str(where), scope): StatisticsAllocator(default_allocator(where, scope)) for scope in scopes}
    session = lb.Session(program, device=where, num_threads=1, memory_cfg=counted)
    session.set_input("x", np.zeros((1, 3, 5, 7), np.float32))
    session.run()
    in_rows = next(planned for planned in session.planned_memory if planned.scope == "global.vtcm")
    assert in_rows.activation_bytes == 15 * 128  # 15 rows of 7 floats, each rounded up to 128 bytes
    for planned in session.planned_memory:
        assert planned.allocated_bytes == counted[planned.device, planned.scope].counters.peak_bytes


def test_the_process_grows_by_what_was_planned(tmp_path: Path) -> None:
    """As benchmarks/memory_peak.py, whose child this is, on a network that compiles quickly."""
    lb.compile(projection(64, 64, 64)).save(tmp_path / "warm.lbx")
    lb.compile(edges(256, 320, 16)).save(tmp_path / "edges.lbx")
    script = Path(__file__).parents[2] / "benchmarks" / "memory_peak.py"
    done = subprocess.run(
        [sys.executable, str(script), "--child", str(tmp_path / "warm.lbx"), str(tmp_path / "edges.lbx"), "2"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert found["planned"] == found["peak"] + found["scratch"] > 9e6
    assert 0.95 * found["planned"] <= found["grown"] <= 1.05 * found["planned"]
