"""Operators of the onnx suite, compiled here and run on the board, against the stored outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import landbridge as lb
from landbridge.ir.module import IRModule
from landbridge.targets import Target
from tests.boards.board import ProgramRunner
from tests.ops import node_cases
from tests.ops.test_node_cases import NAMES

#: What runs whole is every fourth: the compiler is the same as here but for the code generator's last step.
CASES = NAMES[::4]


@pytest.mark.sample(25)
@pytest.mark.parametrize("name", CASES)
def test_a_case_of_the_suite(on_board: ProgramRunner, name: str) -> None:
    def run(module: IRModule, feeds: Mapping[str, np.ndarray[Any, Any]]) -> Sequence[np.ndarray[Any, Any]]:
        return on_board(lb.compile(module, module.targets[0]), feeds)

    node_cases.check(name, Target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"), run)
