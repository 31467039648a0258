"""Machine models: a core is an entry of a table, which schedules follow."""

from __future__ import annotations

import pytest

from landbridge.errors import TargetError
from landbridge.passes.lower.prims import narrow_is_cheaper, vector_unit_of
from landbridge.targets import Target, machine
from landbridge.targets.machine import CORES, CpuCore, cpu_core, cpu_model


def is_known(mcpu: str) -> bool:
    for triple in ("x86_64-linux-gnu", "aarch64-linux-gnu", "armv7-linux-gnueabihf", "riscv64-linux-gnu"):
        try:
            Target(f"llvm -mtriple={triple} -mcpu={mcpu}")
        except TargetError:
            continue
        return True
    return False


@pytest.mark.parametrize("name", CORES)
def test_each_core_of_the_table_is_one_of_llvm_and_has_a_difference(name: str) -> None:
    assert is_known(name) and not is_known(name + "x")
    assert CORES[name] != CpuCore()


def test_a_core_without_an_entry_has_the_defaults() -> None:
    assert cpu_core("no such core") == CpuCore()
    assert CpuCore().multiply_adds_in_flight == 8


def test_a_target_that_names_no_cpu_has_the_defaults() -> None:
    assert "mcpu" not in Target("wasm").options
    assert vector_unit_of(Target("wasm")).core == CpuCore()


def test_a_new_cpu_is_an_entry_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    target = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=haswell")
    assert not vector_unit_of(target).two_passes and not narrow_is_cheaper(target)
    core = CpuCore(fma_latency=5, vector_passes=2)
    monkeypatch.setattr(machine, "CORES", {"haswell": core})
    assert vector_unit_of(target).two_passes and narrow_is_cheaper(target)
    assert vector_unit_of(target).core is core


def test_levels_of_memory_grow() -> None:
    model = cpu_model(Target("llvm -l1-bytes=32768 -l2-bytes=1048576"))
    sizes = [nbytes for _, nbytes in model.levels]
    assert sizes == sorted(sizes) and [name for name, _ in model.levels][:2] == ["L1", "L2"]
