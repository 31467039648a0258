"""A Session works with the Executor that its program needs; all executors of one Session have its lock."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import parser

import landbridge as lb
from landbridge.session.fixed_executor import FixedExecutor
from landbridge.session.open_executor import OpenExecutor
from landbridge.session.pieces_executor import PiecesExecutor

PROGRAMS = {
    "fixed": ("g (float[4] x) => (float[4] y) { y = Neg(x) }", FixedExecutor),
    "open": ("g (float[n] x) => (float[n] y) { y = Neg(x) }", OpenExecutor),
    "cut": ("g (float[n] x) => (int64[1,m] y) { r = Relu(x)  i = NonZero(r)  y = Neg(i) }", PiecesExecutor),
}
#: Runs the program in a file, and prints what was imported of the package.
RUN = """
import sys, numpy, landbridge as lb
session = lb.Session(lb.load(sys.argv[1]), num_threads=1)
session(numpy.ones(4, numpy.float32))
print(*sys.modules)
"""


def compiled(name: str) -> lb.Executable:
    return lb.compile(parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {PROGRAMS[name][0]}'))


@pytest.mark.filterwarnings("ignore::landbridge.errors.FallbackWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_form_of_the_program_chooses(name: str) -> None:
    session = lb.Session(compiled(name), num_threads=1)
    assert type(session) is lb.Session and type(session._executor) is PROGRAMS[name][1]


def test_a_program_of_known_sizes_imports_no_other_executor(tmp_path: Path) -> None:
    compiled("fixed").save(tmp_path / "fixed.lbx")
    child = subprocess.run(
        [sys.executable, "-c", RUN, tmp_path / "fixed.lbx"], capture_output=True, text=True, timeout=60, check=True
    )
    imported = set(child.stdout.split())
    assert "landbridge.session.fixed_executor" in imported
    others = {"open_executor", "open_instances", "held_arguments", "pieces_executor", "limited_session", "state"}
    assert not {f"landbridge.session.{name}" for name in others} & imported


def test_all_instances_have_the_lock_of_the_session() -> None:
    session = lb.Session(compiled("open"), num_threads=1)
    for length in (3, 5, 1 << 12):
        session(np.ones(length, np.float32))
    executor = session._executor
    assert isinstance(executor, OpenExecutor) and executor.instances.executors()
    assert {each.program.entry for each in executor.instances.executors()} == {session._entry}
