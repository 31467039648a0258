"""Products of bytes on AArch64 CPUs with instructions for sums of four products, for data with signs only, and none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import landbridge as lb
from tests.boards.board import Board, ProgramRunner
from tests.ops.one_node import one_node
from tests.ops.test_byte_products import convolved, drawn

#: QEMU's CPU, and LLVM's features for it.
CPUS = [("cortex-a72", ""), ("neoverse-n1", "-mattr=+dotprod"), ("max", "-mattr=+dotprod,+i8mm")]


@pytest.mark.parametrize(("cpu", "features"), CPUS)
def test_products_and_convolutions(cpu: str, features: str, board: Board, tmp_path: Path) -> None:
    target = f"llvm -mtriple=aarch64-linux-gnu -mcpu=generic {features}"
    runner = ProgramRunner(replace(board, cpu=cpu), tmp_path)
    try:
        x, w, zero = drawn("uint8", (5, 37), 1), drawn("int8", (37, 21), 2), np.array(255, np.uint8)
        program = lb.compile(one_node("MatMulInteger", [x, w, zero], {1, 2}), target)
        (found,) = runner(program, {"x0": x})
        np.testing.assert_array_equal(found, (x.astype(np.int64) - 255) @ w.astype(np.int64))
        attributes = {"pads": [1, 1, 1, 1]}
        x, w, zero = drawn("int8", (1, 18, 6, 9), 3), drawn("int8", (24, 18, 3, 3), 4), np.array(-9, np.int8)
        program = lb.compile(one_node("ConvInteger", [x, w, zero], {1, 2}, **attributes), target)
        (found,) = runner(program, {"x0": x})
        np.testing.assert_array_equal(found, convolved(x.astype(np.int64) + 9, w.astype(np.int64), 1, attributes))
    finally:
        runner.close()
