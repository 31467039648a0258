"""Tensors and Executables in queues, pools and workers of other processes, however they were started."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest

import landbridge as lb
from landbridge.errors import NotPicklableError
from tests.selection.installed import package
from tests.tensor import between_processes
from tests.vm import programs

METHODS = ["fork", "forkserver", "spawn"]
SMALL, LARGE = 64, 1 << 18


def tensors(n: int) -> list[lb.Tensor]:
    """Of ``n`` elements each: own memory, borrowed memory, a strided view, a result."""
    x = np.arange(n, dtype=np.float32)
    (result,) = lb.Session(programs.add_weights(n), num_threads=1)(x)
    return [lb.asarray(x, copy=True), lb.asarray(x), lb.asarray(np.arange(2 * n, dtype=np.float32)[::2]), result]


def wanted(tensor: lb.Tensor) -> np.ndarray:
    return np.asarray(tensor) + np.arange(tensor.size, dtype=np.float32)


@pytest.mark.sample(2)
@pytest.mark.parametrize("n", [SMALL, LARGE])
@pytest.mark.parametrize("method", METHODS)
def test_queues(method: str, n: int) -> None:
    context: Any = multiprocessing.get_context(method)
    requested, answered = context.Queue(), context.Queue()
    worker = context.Process(target=between_processes.serve, args=(requested, answered, programs.add_weights(n)))
    worker.start()
    try:
        for tensor in tensors(n):
            requested.put(tensor)
            np.testing.assert_array_equal(np.asarray(answered.get(timeout=60)), wanted(tensor))
        requested.put(None)
        worker.join(60)
        assert worker.exitcode == 0
    finally:
        worker.kill()


@pytest.mark.parametrize("method", METHODS)
def test_executors(method: str) -> None:
    given = tensors(SMALL)
    with ProcessPoolExecutor(1, multiprocessing.get_context(method)) as executor:
        results = list(
            executor.map(between_processes.add, given, [programs.add_weights(SMALL)] * len(given), timeout=60)
        )
        refused = executor.submit(between_processes.refused, lb.Session(programs.add_weights(SMALL), num_threads=1))
        with pytest.raises(NotPicklableError, match="pickle its executable"):
            refused.result(60)
    for tensor, result in zip(given, results, strict=True):
        np.testing.assert_array_equal(np.asarray(result), wanted(tensor))


@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
def test_joblib(backend: str) -> None:
    joblib = package("joblib", "peers")
    program, given = programs.add_weights(LARGE), tensors(LARGE)
    with joblib.parallel_config(backend, n_jobs=2):
        results = joblib.Parallel(timeout=120)(joblib.delayed(between_processes.add)(each, program) for each in given)
    for tensor, result in zip(given, results, strict=True):
        np.testing.assert_array_equal(np.asarray(result), wanted(tensor))


@pytest.mark.full
def test_ray() -> None:
    ray = package("ray", "peers")
    ray.init(num_cpus=1, logging_level="error", log_to_driver=False, include_dashboard=False)
    try:
        (x, *_), program = tensors(LARGE), ray.put(programs.add_weights(LARGE))
        stored = ray.put(x)
        found = ray.get(stored)
        assert found.readonly and found.data_address == ray.get(stored).data_address  # in the store, and not copied
        result = ray.get(ray.remote(between_processes.add).remote(stored, program), timeout=120)
        np.testing.assert_array_equal(np.asarray(result), wanted(x))
    finally:
        ray.shutdown()
