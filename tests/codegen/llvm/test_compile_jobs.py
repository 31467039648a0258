from __future__ import annotations

import gc
import mmap
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from landbridge.codegen.llvm.compile import compile_ir
from landbridge.codegen.llvm.compile_jobs import Job, Jobs, compile_all
from landbridge.codegen.llvm.machine import Machine
from landbridge.errors import CodegenError

MACHINE = Machine("x86_64-unknown-linux-gnu", "x86-64-v3", "")
JOBS = [Job(f"define i64 @f{i}(i64 %x) {{ %y = mul i64 %x, {i + 3} ret i64 %y }}", True) for i in range(8)]


@pytest.mark.parametrize("processes", [1, 3])
def test_objects_come_in_order_whoever_compiles_them(processes: int) -> None:
    assert compile_all(JOBS, MACHINE, processes) == [compile_ir(job.text, MACHINE) for job in JOBS]


@pytest.mark.parametrize("processes", [1, 2])
def test_a_job_may_be_for_another_machine(processes: int) -> None:
    old = Machine("x86_64-unknown-linux-gnu", "x86-64", "")
    text = "define <8 x float> @f(<8 x float> %x) { %y = fadd <8 x float> %x, %x ret <8 x float> %y }"
    made = compile_all([Job(text, True, old), Job(text, True)], MACHINE, processes)
    assert made == [compile_ir(text, old), compile_ir(text, MACHINE)]
    assert made[0] != made[1]


@pytest.mark.sample(2)
@pytest.mark.parametrize(("cores", "expected", "helpers"), [(2, 0, 0), (2, 100, 2), (1, 100, 1), (8, 100, 7)])
def test_helpers_are_there_where_many_are_expected(
    cores: int, expected: int, helpers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []
    popen = subprocess.Popen

    def start(*args: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(args)
        return popen(*args, **options)

    monkeypatch.setattr("landbridge.process.start_helper.subprocess.Popen", start)
    monkeypatch.setattr("landbridge.codegen.llvm.compile_jobs.usable_cores", lambda: cores)
    with closing(Jobs(MACHINE, expected=expected)) as jobs:
        indices = [jobs.add(job) for job in JOBS]
        assert jobs.objects(indices[::-1]) == [compile_ir(job.text, MACHINE) for job in JOBS[::-1]]
    assert len(started) == helpers


class _Held:
    """In the place of a helper: takes jobs, and finishes none before ``finish`` is set."""

    def __init__(self, taken: queue.SimpleQueue[int], finish: threading.Event) -> None:
        self._taken, self._finish = taken, finish

    def work(self, work: Any) -> None:
        while (taken := work.take()) is not None:
            self._taken.put(taken[0])
            self._finish.wait()
            work.done(taken[0], str(taken[0]).encode())


@pytest.mark.parametrize(("cores", "before"), [(2, 1), (1, 1), (4, 3)])
def test_a_core_is_left_to_who_makes_the_modules_until_all_are_made(
    cores: int, before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: queue.SimpleQueue[int] = queue.SimpleQueue()
    finish = threading.Event()
    monkeypatch.setattr("landbridge.codegen.llvm.compile_jobs.usable_cores", lambda: cores)
    monkeypatch.setattr("landbridge.codegen.llvm.compile_jobs._helper", lambda machine: _Held(taken, finish))
    found: list[list[bytes]] = []
    with closing(Jobs(MACHINE, expected=100)) as jobs:
        try:
            indices = [jobs.add(job) for job in JOBS * 4]
            for _ in range(before):
                taken.get(timeout=60)
            with pytest.raises(queue.Empty):  # one more would come at once
                taken.get(timeout=0.1)
            waits = threading.Thread(target=lambda: found.append(jobs.objects(indices)))
            waits.start()
            for _ in range(cores - before):
                taken.get(timeout=60)
        finally:
            finish.set()
        waits.join()
    assert found == [[str(number).encode() for number in indices]]


def test_a_helper_imports_what_it_needs_alone() -> None:
    """Each package is a part of the time that it takes to start."""
    program = "import landbridge.codegen.llvm.compile_jobs, sys; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "xdsl", "onnx", "landbridge.executable.parts"} & set(found)


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

    monkeypatch.setattr("landbridge.process.start_helper.subprocess.Popen", start)
    slow = Job("define void @slow() { ret void }\n" + ";" * 1000 * 1000, True)
    with pytest.raises(CodegenError, match="LLVM ended its process"):
        compile_all([slow, *JOBS * 20], MACHINE, 2)
    assert all(process.returncode is not None for process in started)


_LIMITED = """
import resource, sys
from landbridge.codegen.llvm.machine import Machine
from landbridge.codegen.llvm.compile_jobs import Job, compile_all
from landbridge.errors import CodegenError

machine = Machine("x86_64-unknown-linux-gnu", "x86-64-v3", "")
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
small = Job("define void @f() { ret void }", True)
vast = Job('@x = global [1500000000 x i8] zeroinitializer, section ".rodata"', True)
try:
    compile_all([vast, small], machine)
except CodegenError as error:
    print("error:", error)
print("alive:", len(compile_all([small, small], machine)))
"""


@pytest.mark.full
def test_memory_that_ends_inside_llvm_is_an_error() -> None:
    """An object of 1.5 GB where 2 GiB of addresses are left: LLVM aborts its process, which is not this one."""
    done = subprocess.run([sys.executable, "-c", _LIMITED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "error: LLVM ended its process with status -6" in done.stdout and "memory" in done.stdout
    assert "alive: 2" in done.stdout


def test_modules_leave_no_memory_behind() -> None:
    """The pipeline of each would keep about 70 KiB: 14 MB of 200."""
    lines = (
        "from tests.codegen.llvm.test_compile_jobs import MACHINE, growth_of",
        "from landbridge.codegen.llvm.compile import compile_ir",
        "print(growth_of(lambda i: compile_ir(f'define i64 @f{i}(i64 %x) {{ ret i64 %x }}', MACHINE), 20, 200))",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 3_000_000


def growth_of(action: Callable[[int], object], warm_up: int, count: int) -> int:
    """The bytes that the process grows by while ``action`` runs ``count`` times after ``warm_up`` times."""
    for i in range(warm_up):
        action(i)
    gc.collect()
    before = _resident_bytes()
    for i in range(warm_up, warm_up + count):
        action(i)
    gc.collect()
    return _resident_bytes() - before


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE
