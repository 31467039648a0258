"""Operators of the onnx suite, compiled here and run on the board, against the stored outputs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import landbridge as lb
from landbridge.codegen.llvm import compile_jobs
from landbridge.ir.module import IRModule
from landbridge.targets import Target
from tests.boards.board import ProgramRunner
from tests.ops import node_cases
from tests.ops.test_node_cases import NAMES

#: ml-dtypes is missing there, too; the others end QEMU 7.2, and pass in QEMU 10.0.
_NOT_ON_RISCV = re.compile(r"bfloat16|pow|mod.*float|float.*mod")
#: What QEMU 7.2 says where it cannot translate a conversion of vectors. Programs for other cases have such a place now
#: and then: it depends on the instructions before it.
_ENDS_QEMU = "decode_save_opc: Assertion `ctx->insn_start != NULL' failed"


@pytest.fixture(autouse=True)
def compile_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of its own for foreign code, which an abort of LLVM does not end the compile with, takes three quarters
    of a case's time; here an abort ends pytest's worker, which then names the case. Models are compiled apart."""
    monkeypatch.setattr(compile_jobs, "_is_foreign", lambda machine: False)


@pytest.mark.sample(15, shared=False)
@pytest.mark.parametrize("name", NAMES)
def test_a_case_of_the_suite(on_board: ProgramRunner, name: str) -> None:
    def run(module: IRModule, feeds: Mapping[str, np.ndarray[Any, Any]]) -> Sequence[np.ndarray[Any, Any]]:
        return on_board(lb.compile(module, module.targets[0]), feeds)

    node_cases.check(name, Target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"), run)


@pytest.mark.sample(15, rarer=3)
@pytest.mark.parametrize("name", NAMES)
def test_a_case_on_32_bits(on_armv7: ProgramRunner, name: str) -> None:
    def run(module: IRModule, feeds: Mapping[str, np.ndarray[Any, Any]]) -> Sequence[np.ndarray[Any, Any]]:
        return on_armv7(lb.compile(module, module.targets[0]), feeds)

    node_cases.check(name, Target("llvm -mtriple=armv7-linux-gnueabihf -mcpu=cortex-a9"), run)


@pytest.mark.sample(15, rarer=3)
@pytest.mark.parametrize("name", [name for name in NAMES if not _NOT_ON_RISCV.search(name.lower())])
def test_a_case_on_riscv(on_riscv64: ProgramRunner, name: str) -> None:
    def run(module: IRModule, feeds: Mapping[str, np.ndarray[Any, Any]]) -> Sequence[np.ndarray[Any, Any]]:
        return on_riscv64(lb.compile(module, module.targets[0]), feeds)

    try:
        node_cases.check(name, Target("llvm -mtriple=riscv64-linux-gnu -mcpu=generic -mattr=+v"), run)
    except AssertionError as error:
        if _ENDS_QEMU not in str(error):
            raise
        pytest.xfail("this QEMU cannot translate a conversion of vectors, and ends itself")
