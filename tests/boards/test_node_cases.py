"""Operators of the onnx suite, compiled here and run on the board, against the stored outputs."""

from __future__ import annotations

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
