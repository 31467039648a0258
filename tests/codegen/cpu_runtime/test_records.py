from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landbridge.executable import abi
from landbridge.targets.target import Target
from landbridge.vm.code_image import LoadedImage

from ..native import Array, build

SIZE = 1024
KERNELS = f"""
func.func @count(%a: memref<{SIZE}xi64>, %begin: index, %end: index) attributes {{lb.in_place}} {{
  %c1 = arith.constant 1 : index
  %k = arith.constant 1 : i64
  scf.for %i = %begin to %end step %c1 {{
    %x = memref.load %a[%i] : memref<{SIZE}xi64>
    %y = arith.addi %x, %k : i64
    memref.store %y, %a[%i] : memref<{SIZE}xi64>
  }}
  func.return
}}
func.func @double(%a: memref<{SIZE}xi64>, %begin: index, %end: index) attributes {{lb.in_place}} {{
  %c1 = arith.constant 1 : index
  scf.for %i = %begin to %end step %c1 {{
    %x = memref.load %a[%i] : memref<{SIZE}xi64>
    %y = arith.addi %x, %x : i64
    memref.store %y, %a[%i] : memref<{SIZE}xi64>
  }}
  func.return
}}
func.func @scan(%a: memref<{SIZE}xi64>, %b: memref<{SIZE}xi64>, %begin: index, %end: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant {SIZE} : index
  %zero = arith.constant 0 : i64
  scf.for %i = %begin to %end step %c1 {{
    %s = scf.for %j = %c0 to %n step %c1 iter_args(%t = %zero) -> (i64) {{
      %x = memref.load %a[%j] : memref<{SIZE}xi64>
      %y = arith.addi %t, %x : i64
      scf.yield %y : i64
    }}
    memref.store %s, %b[%i] : memref<{SIZE}xi64>
  }}
  func.return
}}"""

Record = tuple[int, int, int, int]


class Runtime:
    """The functions of a loaded image that the native interface names."""

    def __init__(self, image: LoadedImage) -> None:
        self.image = image
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        run = ctypes.CFUNCTYPE(number, pointer, pointer, pointer, number)
        self._run = run(image.address(abi.RUN_SYMBOL))
        create = ctypes.CFUNCTYPE(pointer, number, number)(image.address(abi.POOL_CREATE_SYMBOL))
        self.create = lambda threads, workspace_bytes=0: create(threads, workspace_bytes)
        self.destroy = ctypes.CFUNCTYPE(None, pointer)(image.address(abi.POOL_DESTROY_SYMBOL))
        self._retained: list[object] = []

    def record(self, kernel: str, tasks: int, *arrays: Array) -> Record:
        """A call; the arrays must outlive it."""
        addresses = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        self._retained.append(addresses)
        return abi.RECORD_CALL, self.image.address(kernel), ctypes.addressof(addresses), tasks

    def run(self, pool: int | None, records: Sequence[Record]) -> None:
        words = np.array(records, np.int64).reshape(-1, abi.RECORD_WORDS)
        assert self._run(pool, None, words.ctypes.data, len(records)) == 0


@pytest.fixture(scope="module")
def runtime(target: Target) -> Runtime:
    return Runtime(build(KERNELS, target))


@pytest.fixture(params=[None, 1, 2, 3, 4])
def pool(runtime: Runtime, request: pytest.FixtureRequest) -> Iterator[int | None]:
    made = runtime.create(request.param) if request.param else None
    yield made
    runtime.destroy(made)


@pytest.mark.sample(5)
def test_every_task_runs_exactly_once(runtime: Runtime, pool: int | None) -> None:
    rng = np.random.default_rng(0)
    a, want = np.zeros(SIZE, np.int64), np.zeros(SIZE, np.int64)
    for iteration in range(400):
        counts = rng.choice([1, 2, 3, 5, 7, 8, 9, 16, 17, 100, SIZE], int(rng.integers(1, 12)))
        runtime.run(pool, [runtime.record("count", int(n), a) for n in counts])
        for n in counts:
            want[:n] += 1
        np.testing.assert_array_equal(a, want)
        if iteration % 20 == 0:
            time.sleep(rng.uniform(0, 1e-3))  # long enough that workers fall asleep


def test_a_record_sees_all_that_records_before_it_wrote(runtime: Runtime, pool: int | None) -> None:
    a, b = np.zeros(SIZE, np.int64), np.zeros(SIZE, np.int64)
    step = [runtime.record("count", SIZE, a), runtime.record("scan", SIZE, a, b)]
    for iteration in range(1, 100):
        runtime.run(pool, step)
        assert (b == SIZE * iteration).all()


def test_no_tasks_and_no_records(runtime: Runtime, pool: int | None) -> None:
    a = np.zeros(SIZE, np.int64)
    runtime.run(pool, [])
    runtime.run(pool, [runtime.record("count", 0, a)])
    assert not a.any()


def test_branches_and_jumps(runtime: Runtime, pool: int | None) -> None:
    a, flag = np.zeros(SIZE, np.int64), np.zeros(1, np.uint8)
    records = [
        (abi.RECORD_BRANCH_IF_ZERO, flag.ctypes.data, 3, 0),
        runtime.record("count", SIZE, a),
        (abi.RECORD_JUMP, 0, 5, 0),
        runtime.record("count", SIZE, a),
        runtime.record("double", SIZE, a),
        runtime.record("count", SIZE, a),
    ]
    runtime.run(pool, records)
    assert (a == 3).all()
    a[:], flag[:] = 0, 7
    runtime.run(pool, records)
    assert (a == 2).all()


@pytest.mark.parametrize("threads", [0, -1, -(2**60)])
def test_a_pool_needs_a_thread(runtime: Runtime, threads: int) -> None:
    assert runtime.create(threads) is None


def test_destroying_nothing_is_nothing(runtime: Runtime) -> None:
    runtime.destroy(None)


def test_pools_come_and_go(runtime: Runtime) -> None:
    a = np.zeros(SIZE, np.int64)
    before = threads_of_process()
    for iteration in range(120):
        pool = runtime.create(1 + iteration % 4)
        if iteration % 3:
            runtime.run(pool, [runtime.record("count", SIZE, a)] * 2)
        if iteration % 10 == 0:
            time.sleep(2e-4)
        runtime.destroy(pool)
    assert (a == 160).all()
    deadline = time.monotonic() + 5  # the kernel lists a thread for a moment after it was joined
    while threads_of_process() > before and time.monotonic() < deadline:
        time.sleep(1e-3)
    assert threads_of_process() <= before


def threads_of_process() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def test_a_busy_pool_is_not_waited_for(runtime: Runtime) -> None:
    pool = runtime.create(3)
    buffers = [np.zeros(SIZE, np.int64) for _ in range(4)]

    def work(buffer: Array) -> None:
        for _ in range(100):
            runtime.run(pool, [runtime.record("count", SIZE, buffer)] * 10)

    threads = [threading.Thread(target=work, args=(b,)) for b in buffers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    runtime.destroy(pool)
    assert all((b == 1000).all() for b in buffers)


@settings(max_examples=60)
@given(
    threads=st.integers(1, 4),
    program=st.lists(st.tuples(st.sampled_from(["count", "double"]), st.integers(0, SIZE)), max_size=20),
)
def test_any_program_gives_what_one_thread_gives(
    runtime: Runtime, threads: int, program: list[tuple[str, int]]
) -> None:
    alone, shared = np.zeros(SIZE, np.int64), np.zeros(SIZE, np.int64)
    runtime.run(None, [runtime.record(kernel, tasks, alone) for kernel, tasks in program])
    pool = runtime.create(threads)
    runtime.run(pool, [runtime.record(kernel, tasks, shared) for kernel, tasks in program])
    runtime.destroy(pool)
    np.testing.assert_array_equal(shared, alone)
