"""What only loads and runs, on the oldest and the newest Python of the board: numpy alone, and the commands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import landbridge as lb
from tests.boards.board import Board
from tests.cli.test_parser import EVERY_PYTHON
from tests.package.test_light_install import RUN
from tests.whole_models.small_models import edges

#: A call that the next Python lacks fails here.
STRICT = ("-W", "error::DeprecationWarning", "-W", "error::PendingDeprecationWarning")


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    lb.compile(edges(24, 32), "raspberry-pi-4").save(tmp_path / "edges.lbx")
    return tmp_path / "edges.lbx"


def run(board: Board, *arguments: str) -> str:
    command = board.command(*STRICT, *arguments)
    done = subprocess.run(command, env=board.environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_numpy_alone(each_python: Board, compiled: Path, tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(1, 3, 24, 32)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    files = [str(compiled), str(tmp_path / "x.npy"), str(tmp_path / "y.npy")]
    printed = run(each_python, "-c", RUN, *files, each_python.python_version, "")
    (wanted,) = lb.Session(lb.compile(edges(24, 32)))(x)
    # Sums in another order: 48 terms of about 2, each rounded.
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), np.asarray(wanted), rtol=0, atol=1e-5)
    compiling, narrow, functions = printed.splitlines()
    assert compiling.startswith("CompileError") and "pip install 'landbridge[compile]'" in compiling
    assert narrow.startswith("InputError") and functions.startswith("UnsupportedError")


@pytest.mark.full
def test_the_command(each_python: Board, compiled: Path) -> None:
    assert json.loads(run(each_python, "-m", "landbridge", "run", str(compiled), "--json"))


def test_help_and_answers_are_those_of_this_python(each_python: Board) -> None:
    here = subprocess.run([sys.executable, "-c", EVERY_PYTHON], capture_output=True, text=True, check=True)
    assert run(each_python, "-c", EVERY_PYTHON) == here.stdout
