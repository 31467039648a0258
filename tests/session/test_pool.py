"""Pool: runs on several Sessions, results in order, and an end to what may wait."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import landbridge as lb
from tests.whole_models.small_models import add, edges

PROGRAM = lb.compile(add(64))  # y = x + b


def _numbered(count: int) -> list[np.ndarray]:
    return [np.full(64, i, np.float32) for i in range(count)]


def test_results_are_those_of_a_session() -> None:
    zero = lb.Session(PROGRAM)(np.zeros(64, np.float32))[0].numpy()
    with lb.Pool(PROGRAM, 3) as pool:
        futures = [pool.submit(x) for x in _numbered(50)]
        for i, future in enumerate(futures):
            np.testing.assert_array_equal(future.result(30)[0].numpy(), zero + np.float32(i))
        assert pool.submit({"x": np.zeros(64, np.float32)}).result(30)["y"].tolist() == zero.tolist()


def test_callbacks_come_in_order_one_at_a_time() -> None:
    seen: list[float] = []
    inside = threading.Semaphore(1)

    def callback(outputs: list[lb.Tensor]) -> None:
        assert inside.acquire(blocking=False)
        seen.append(float(outputs[0][0]))
        time.sleep(0.0005 * (len(seen) % 3))
        inside.release()

    with lb.Pool(PROGRAM, 4) as pool:
        futures = [pool.submit(x, callback=callback) for x in _numbered(60)]
    assert all(future.exception() is None for future in futures)
    assert seen == sorted(seen)
    assert len(seen) == 60


def test_a_run_that_fails_holds_up_nothing() -> None:
    seen: list[float] = []

    def callback(outputs: list[lb.Tensor]) -> None:
        seen.append(float(outputs[0][0]))
        if len(seen) == 2:
            raise ValueError("of a callback")

    with lb.Pool(PROGRAM, 2) as pool:
        good = pool.submit(np.zeros(64, np.float32), callback=callback)
        wrong = pool.submit(np.zeros(63, np.float32), callback=callback)
        raising = pool.submit(np.ones(64, np.float32), callback=callback)
        after = pool.submit(np.ones(64, np.float32), callback=callback)
    with pytest.raises(lb.InputError):
        wrong.result(30)
    with pytest.raises(ValueError, match="of a callback"):
        raising.result(30)
    assert good.exception() is None and after.exception() is None
    assert len(seen) == 3


def test_submit_waits_while_too_many_wait() -> None:
    gate = threading.Event()
    with lb.Pool(PROGRAM, 1, waiting=1) as pool, ThreadPoolExecutor(1) as other:
        held = [pool.submit(x, callback=lambda _: gate.wait(30)) for x in _numbered(2)]
        third = other.submit(pool.submit, np.ones(64, np.float32))
        time.sleep(0.05)
        assert not third.done()
        gate.set()
        assert third.result(30).result(30)
        assert all(future.result(30) for future in held)


def test_map_takes_inputs_as_there_is_space() -> None:
    taken = 0

    def frames():
        nonlocal taken
        while True:
            taken += 1
            yield np.full(64, taken, np.float32)

    with lb.Pool(PROGRAM, 2, waiting=1) as pool:
        results = pool.map(frames())
        first = [float(next(results)[0][0]) for _ in range(20)]
        assert np.diff(first).tolist() == [1.0] * 19
        assert taken <= 20 + 3
        results.close()


def test_submits_of_several_threads_keep_an_order() -> None:
    seen: list[int] = []
    with lb.Pool(PROGRAM, 2) as pool, ThreadPoolExecutor(4) as threads:
        done = [threads.submit(pool.submit, x, callback=lambda _: seen.append(1)) for x in _numbered(80)]
        assert all(future.result(60).result(60) for future in done)
    assert len(seen) == 80


def test_a_closed_pool_takes_nothing_and_wrong_numbers_are_reported() -> None:
    pool = lb.Pool(PROGRAM, 1)
    assert repr(pool) == "Pool(Session(x -> y), n=1)"
    pool.close()
    with pytest.raises(lb.InputError, match="takes no more runs"):
        pool.submit(np.zeros(64, np.float32))
    for wrong in ({"n": 0}, {"n": True}, {"waiting": -1}):
        with pytest.raises(lb.InputError, match="legal: None"):
            lb.Pool(PROGRAM, **wrong)


def test_weights_are_there_once() -> None:
    program = lb.compile(edges(64, 64))
    with lb.Pool(program, 3) as pool:
        assert {id(session.executable) for session in pool._sessions} == {id(program)}
