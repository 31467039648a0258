from __future__ import annotations

import subprocess
import sys

import pytest

from landbridge.codegen.llvm.compile import Machine, compile_ir
from landbridge.codegen.llvm.parallel import Job, compile_all
from landbridge.errors import CodegenError

MACHINE = Machine("x86_64-unknown-linux-gnu", "x86-64-v3", "")
JOBS = [Job(f"define i64 @f{i}(i64 %x) {{ %y = mul i64 %x, {i + 3} ret i64 %y }}", True) for i in range(8)]


@pytest.mark.parametrize("processes", [1, 3])
def test_objects_come_in_order_whoever_compiles_them(processes: int) -> None:
    assert compile_all(JOBS, MACHINE, processes) == [compile_ir(job.text, MACHINE) for job in JOBS]


def test_nothing_to_compile() -> None:
    assert compile_all([], MACHINE) == []


@pytest.mark.parametrize("processes", [1, 2])
def test_the_first_rejected_module_is_the_error(processes: int) -> None:
    jobs = [*JOBS[:2], Job("define @first", True), Job("define @second", True)]
    with pytest.raises(CodegenError, match="LLVM rejects"):
        compile_all(jobs, MACHINE, processes)


def test_a_helper_that_dies_is_an_error_and_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def start(command: list[str], **options: object) -> subprocess.Popen[bytes]:
        # It takes one job and ends as LLVM's assertions would end it.
        process = popen([sys.executable, "-c", "import os; os.read(0, 1); os.abort()"], **options)  # type: ignore[call-overload]
        started.append(process)
        return process  # type: ignore[no-any-return]

    monkeypatch.setattr("landbridge.codegen.llvm.parallel.subprocess.Popen", start)
    slow = Job("define void @slow() { ret void }\n" + ";" * 1000 * 1000, True)
    with pytest.raises(CodegenError, match="LLVM ended its process"):
        compile_all([slow, *JOBS * 20], MACHINE, 2)
    assert all(process.returncode is not None for process in started)
