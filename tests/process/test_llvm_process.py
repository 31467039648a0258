"""A process that has LLVM is there before anybody asks, and LLVM is not in the process that asks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import onnx
import pytest

from landbridge.codegen.llvm.compile import compile_ir
from landbridge.codegen.llvm.compile_jobs import Job, Jobs
from landbridge.codegen.llvm.machine import Machine
from landbridge.process import llvm_process, start_helper
from landbridge.targets import llvm_cpu
from tests.whole_models.small_models import add

MACHINE = Machine("x86_64-unknown-linux-gnu", "x86-64-v3", "")
JOB = Job("define i64 @f(i64 %x) { %y = mul i64 %x, 3 ret i64 %y }", True)


@pytest.fixture
def ended() -> Iterator[None]:
    """No process is left of the test."""
    yield
    if llvm_process.is_begun():
        llvm_process.take().communicate()


def test_it_says_what_llvm_says_here(ended: None) -> None:
    llvm_process.begin()
    assert llvm_process.answer() == llvm_cpu.host()
    assert llvm_process.is_begun()


def test_it_compiles_then_whether_it_was_requested_or_not(ended: None) -> None:
    for is_requested in (True, False):
        llvm_process.begin()
        llvm_process.begin()  # which is no second one
        assert not is_requested or llvm_process.answer() is not None
        with closing(Jobs(MACHINE)) as jobs:
            assert jobs.objects([jobs.add(JOB)]) == [compile_ir(JOB.text, MACHINE)]
        assert not llvm_process.is_begun()


@pytest.mark.parametrize("says", ["raise SystemExit; ", "import sys, pickle; pickle.dump(None, sys.stdout.buffer); "])
def test_where_llvm_does_not_load_there_it_is_requested_here(says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm_process, "_TELL", says + "sys.stdout.buffer.flush(); ")
    llvm_process.begin()
    assert llvm_cpu.host.__wrapped__() == llvm_cpu.host()
    assert not llvm_process.is_begun()


def test_no_process_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise BlockingIOError

    monkeypatch.setattr(start_helper.subprocess, "Popen", refused)
    llvm_process.begin()
    assert not llvm_process.is_begun() and llvm_process.answer() is None


_NEVER_TAKEN = "from landbridge.process import llvm_process as p; p.begin(); print(p._begun[0][0].pid)"


def test_one_that_nobody_takes_ends_with_its_parent() -> None:
    done = subprocess.run([sys.executable, "-c", _NEVER_TAKEN], capture_output=True, text=True, check=True)
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)
    assert not done.stderr


_COMMAND = """
import atexit, sys
atexit.register(lambda: print([name for name in sys.modules if name.startswith("llvmlite")]))
from landbridge.cli import main
main()
"""


def test_the_command_that_compiles_has_no_llvm_of_its_own(tmp_path: Path) -> None:
    onnx.save(add(), tmp_path / "m.onnx")
    command = [sys.executable, "-c", _COMMAND, "compile", str(tmp_path / "m.onnx")]
    environment = os.environ | {"LANDBRIDGE_CACHE": "0"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines()[-1] == "[]"
    assert (tmp_path / "m.lbx").exists()
