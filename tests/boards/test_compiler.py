"""The compiler itself on AArch64 makes what it makes here, byte for byte, and the device keeps its contract there."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx

import landbridge as lb
from tests.boards.board import Board
from tests.whole_models.small_models import edges

#: Seconds that a process of the board may take, which is emulated, on a busy machine.
LIMIT = 900

COMPILE = """
import sys
import numpy as np, landbridge as lb
folder = sys.argv[1]
x = np.load(f"{folder}/x.npy")
for number, target in enumerate(sys.argv[2:]):
    lb.compile(f"{folder}/edges.onnx", target).save(f"{folder}/there.{number}.lbx")
here = lb.compile(f"{folder}/edges.onnx")
np.save(f"{folder}/y.npy", np.asarray(lb.Session(here, num_threads=2)(x)[0]))
print(here.modules[0].image.isa, sys.version_info[1])
"""


def test_the_compiler_makes_there_what_it_makes_here(board: Board, tmp_path: Path) -> None:
    model, targets = edges(12, 16, 8), ("raspberry-pi-5", "x86-64-v3")
    onnx.save(model, tmp_path / "edges.onnx")
    x = np.random.default_rng(0).normal(size=(1, 3, 12, 16)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    there = replace(board, cpu="max", compiles=True)
    assert there.output(COMPILE, str(tmp_path), *targets) == f"aarch64 {board.python_version.partition('.')[2]}"
    for number, target in enumerate(targets):
        found, wanted = lb.load(tmp_path / f"there.{number}.lbx"), lb.compile(model, target)
        assert found.modules[0].image.code == wanted.modules[0].image.code, target
        assert found.main == wanted.main
        assert all(np.array_equal(found.constants[name], wanted.constants[name]) for name in wanted.constants)
    (wanted_y,) = lb.Session(lb.compile(model))(x)
    # Sums in another order: 72 terms of about 2, each rounded.
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), np.asarray(wanted_y), rtol=0, atol=1e-5)


def test_the_device_keeps_its_contract(board: Board) -> None:
    command = board.command("-m", "landbridge", "conformance", "cpu")
    done = subprocess.run(command, env=board.environment, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 failed," in done.stderr and int(done.stderr.split("cpu:0: ")[1].split()[0]) > 60
