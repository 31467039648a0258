"""Threads: many that call one Session, many with a Session each, and both while others come and go.

Where Python has no lock for all, as in 3.14t, they run at the same time, and so does each line between them.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import landbridge as lb

THREADS = 8
#: Calls of each thread.
ROUNDS = 60
#: Seconds after which a test has hung.
LIMIT = 120


@pytest.fixture(autouse=True)
def _threads_change_often() -> Any:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def by_all(work: Callable[[int], None]) -> None:
    """Has each thread do ``work`` of its number, all begun together; what one raises is raised."""
    together = threading.Barrier(THREADS)

    def begun(i: int) -> None:
        together.wait(LIMIT)
        work(i)

    with ThreadPoolExecutor(THREADS) as pool:
        for future in [pool.submit(begun, i) for i in range(THREADS)]:
            future.result(LIMIT)


def check(session: Any, program: Any, case: int) -> None:
    case %= len(program.inputs)
    y = np.asarray(session(program.inputs[case])[0])
    assert y.tobytes() == program.outputs[case].tobytes()


@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("name", ["fixed", "open_sizes"])
def test_one_session(name: str, num_threads: int, request: pytest.FixtureRequest) -> None:
    program = request.getfixturevalue(name)
    session = lb.Session(lb.load(program.file), num_threads=num_threads)
    by_all(lambda i: [check(session, program, i) for _ in range(ROUNDS)] and None)


def test_one_session_with_sizes_that_change_in_each_thread(open_sizes: Any) -> None:
    session = lb.Session(lb.load(open_sizes.file), num_threads=1)
    by_all(lambda i: [check(session, open_sizes, i + turn) for turn in range(ROUNDS)] and None)


@pytest.mark.parametrize("name", ["fixed", "open_sizes"])
def test_many_sessions(name: str, request: pytest.FixtureRequest) -> None:
    program = request.getfixturevalue(name)

    def work(i: int) -> None:
        session = lb.Session(lb.load(program.file), num_threads=1 + i % 2)
        for turn in range(ROUNDS):
            check(session, program, i + turn)

    by_all(work)


def test_sessions_of_one_program_come_and_go(fixed: Any, open_sizes: Any) -> None:
    executables = [(program, lb.load(program.file)) for program in (fixed, open_sizes)]

    def work(i: int) -> None:
        for turn in range(12):
            program, executable = executables[(i + turn) % 2]
            check(lb.Session(executable, num_threads=1), program, turn)

    by_all(work)


def test_what_is_bound_is_of_one_thread_each(fixed: Any) -> None:
    """Runs without copies, of a Session a thread, while the others' go on."""
    executable = lb.load(fixed.file)

    def work(i: int) -> None:
        session = lb.Session(executable, num_threads=1)
        x, y = fixed.inputs[i].copy(), np.zeros_like(fixed.outputs[i])
        session.set_input_zero_copy("x", x)
        session.set_output_zero_copy(0, y)
        for _ in range(ROUNDS):
            y[:] = 0
            session.run()
            assert y.tobytes() == fixed.outputs[i].tobytes()

    by_all(work)


def test_a_pool(fixed: Any) -> None:
    with lb.Pool(lb.load(fixed.file)) as pool:
        for x, y in zip(fixed.inputs * 4, pool.map((x,) for x in fixed.inputs * 4), strict=True):
            case = next(i for i, each in enumerate(fixed.inputs) if each is x)
            assert np.asarray(y[0]).tobytes() == fixed.outputs[case].tobytes()

        def work(i: int) -> None:
            for _ in range(10):
                outputs = pool.submit(fixed.inputs[i]).result(LIMIT)
                assert np.asarray(outputs[0]).tobytes() == fixed.outputs[i].tobytes()

        by_all(work)


def test_tensors_and_views(fixed: Any) -> None:
    """One Tensor that all read, while each makes and drops its own."""
    shared = lb.asarray(fixed.inputs[0])

    def work(i: int) -> None:
        for _ in range(ROUNDS):
            own = lb.empty((3, 5 + i), dtype="float32")
            with own.host_view("w") as view:
                view[:] = i
            with own.host_view("r") as view:
                assert (view == i).all()
            with shared.host_view("r") as view:
                assert view.tobytes() == fixed.inputs[0].tobytes()
            assert np.from_dlpack(shared).tobytes() == fixed.inputs[0].tobytes()

    by_all(work)


def test_a_ledger_counts_what_all_threads_copy(fixed: Any) -> None:
    tensor = lb.asarray(fixed.inputs[0])

    def work(i: int) -> None:
        for _ in range(ROUNDS):
            tensor.copy()

    with lb.ledger() as moves:
        by_all(work)
    assert moves.total_bytes == THREADS * ROUNDS * fixed.inputs[0].nbytes


def test_what_is_imported_first_by_many_threads_at_once(fixed: Any) -> None:
    code = """
import sys, threading
import landbridge as lb
together, wrong = threading.Barrier(8), []
def work(i):
    together.wait(60)
    try:
        names = lb.__all__[i:] + lb.__all__[:i]
        assert all(getattr(lb, name) is not None for name in names)
        lb.Session(lb.load(sys.argv[1]))
    except BaseException as error:
        wrong.append(repr(error))
threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(wrong)
"""
    command = [sys.executable, "-c", code, str(fixed.file)]
    for _ in range(3):
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
        assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr + done.stdout
