"""Devices and CPUs of the other byte order are refused where a program is compiled, loaded and bound."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

import landbridge as lb
from landbridge.device.api import Device
from landbridge.errors import BindError, ExecutableError, TargetError
from landbridge.memory_kind import MemoryKind
from landbridge.testing.sim_lazy import SimLazyDeviceAPI

BIG = {"scope": "global", "host_access": "none", "coherent": False, "byte_order": "big"}


class BigEndian(SimLazyDeviceAPI):
    """Kernels read big-endian numbers."""

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        return {"global": MemoryKind(**BIG)}


@pytest.fixture(scope="module")
def program() -> lb.Executable:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (4,)) for name in "xy")
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "neg", [x], [y])
    return lb.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))


def test_no_target_has_big_endian_memory() -> None:
    with pytest.raises(TargetError, match="memory 'global' holds big-endian numbers"):
        lb.Target({"kind": "llvm", "memory": [BIG]})


def test_no_program_is_bound_to_it(program: lb.Executable) -> None:
    with pytest.raises(BindError, match="of sim:lazy:0 holds big-endian numbers"):
        lb.Session(program, device=Device(BigEndian(), 0))


def test_no_program_is_loaded_on_a_big_endian_cpu(
    program: lb.Executable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.save(path := tmp_path / "neg.lbx")
    monkeypatch.setattr(sys, "byteorder", "big")
    with pytest.raises(ExecutableError, match=r"neg.lbx: .* this CPU is big-endian"):
        lb.load(path)
    monkeypatch.undo()
    assert (np.asarray(lb.Session(lb.load(path))(np.ones(4, np.float32))) == -1).all()


def test_no_kernels_are_written_for_a_compiler_of_big_endian_cpus(tmp_path: Path) -> None:
    compiler = tmp_path / "gcc"
    macros = "#define __BYTE_ORDER__ __ORDER_BIG_ENDIAN__\n#define __powerpc64__ 1"
    compiler.write_text(f"#!/bin/sh\necho '{macros}'\n")
    compiler.chmod(0o755)
    with pytest.raises(TargetError, match=r"gcc makes code for a big-endian CPU"):
        lb.Target({"kind": "c", "compiler": str(compiler), "mcpu": "generic"})
