"""The pool of native threads: each bound, wait and wake-up, in the order of events that needs it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.codegen.cpu_runtime.native_pool import PATIENCE, Pool, System, doing, within_patience


class Stage(System):
    """Notes who sleeps; holds up workers at their first look at the clock or before they sleep, if a test says so."""

    def __init__(self) -> None:
        self.sleeping = threading.Semaphore(0)
        self.held, self.go_on, self.woken = threading.Semaphore(0), threading.Event(), threading.Event()
        self.hold: str | None = None
        self.time_stands_still = False
        self.workers_left = 1 << 30

    def _hold(self) -> None:
        self.held.release()
        assert self.go_on.wait(PATIENCE)

    def clock(self) -> int:
        if self.hold == "looking" and not self.go_on.is_set():
            now = super().clock()
            if self.second_look():
                self._hold()
                return now + 10**9  # it has looked long enough
            return now
        return 0 if self.time_stands_still else super().clock()

    def second_look(self) -> bool:
        """Whether the thread has looked at the clock before: the first look is when it begins to spin."""
        looks = self.__dict__.setdefault("looks", {})
        me = threading.get_ident()
        looks[me] = looks.get(me, 0) + 1
        return bool(looks[me] == 2)

    def before_sleep(self) -> None:
        self.sleeping.release()
        if self.hold == "sleeping" and not self.go_on.is_set():
            self._hold()

    def after_wake(self) -> None:
        self.woken.set()

    def refuses_thread(self) -> bool:
        self.workers_left -= 1
        return self.workers_left < 0

    def all_sleep(self, workers: int) -> None:
        for _ in range(workers):
            assert self.sleeping.acquire(timeout=PATIENCE)


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    yield stage
    stage.go_on.set()


class Meeting:
    """A kernel of which each of ``threads`` threads does one task: none goes on before all are there."""

    def __init__(self, threads: int) -> None:
        self._barrier = threading.Barrier(threads, timeout=PATIENCE)
        self.met, self.missed = 0, False

    def __call__(self, begin: int, end: int) -> None:
        try:
            self._barrier.wait()
        except threading.BrokenBarrierError:
            self.missed = True
        self.met += end - begin


def meet(pool: Pool, threads: int) -> None:
    """All threads of the pool have a part in the next call."""
    meeting = Meeting(threads)
    within_patience(lambda: pool.run((meeting, threads)))
    assert meeting.met == threads and not meeting.missed


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_each_task_is_done_once_before_the_next_kernel_begins(stage: Stage, threads: int) -> None:
    pool = Pool(threads, stage)
    for tasks in (1, 2, 3, threads * 4 - 1, threads * 4, threads * 4 + 1, threads * 8 - 1, threads * 8, 100):
        done: list[list[tuple[int, int]]] = [[], []]
        before: list[int] = []

        def first(begin: int, end: int, done: list[list[tuple[int, int]]] = done) -> None:
            done[0].append((begin, end))

        def second(begin: int, end: int, done: list[list[tuple[int, int]]] = done, before: list[int] = before) -> None:
            before.append(sum(stop - start for start, stop in done[0]))
            done[1].append((begin, end))

        within_patience(lambda first=first, second=second, tasks=tasks: pool.run((first, tasks), (second, tasks)))  # type: ignore[misc]
        for parts in done:
            assert all(begin < end for begin, end in parts)
            assert [task for begin, end in sorted(parts) for task in range(begin, end)] == list(range(tasks))
        assert set(before) == {tasks}
    within_patience(pool.destroy)


@pytest.mark.sample(2)
@pytest.mark.parametrize("waits", ["spinning", "sleeping"])
@pytest.mark.parametrize("threads", [2, 3])
def test_a_call_returns_when_its_last_task_is_done(stage: Stage, waits: str, threads: int) -> None:
    """Also when a single one is left, and however long it takes."""
    pool = Pool(threads, stage)
    stage.time_stands_still = waits == "spinning"
    caller: list[int] = []
    early: list[bool] = []
    meeting, late, has_over = Meeting(threads), threading.Lock(), threading.Event()

    def kernel(begin: int, end: int) -> None:
        has_over.wait()  # the run may begin before its event has a name here
        meeting(begin, end)
        if threading.get_ident() not in caller:
            with late:  # one after another
                early.append(over.wait(0.1))

    def run() -> None:
        caller.append(threading.get_ident())
        pool.run((kernel, threads))

    with doing(run) as over:
        has_over.set()
    assert early == [False] * (threads - 1) and not meeting.missed
    stage.time_stands_still = False
    within_patience(pool.destroy)


def test_workers_that_sleep_are_woken(stage: Stage) -> None:
    pool = Pool(3, stage)
    for _ in range(2):
        stage.all_sleep(2)
        meet(pool, 3)
    within_patience(pool.destroy)


@pytest.mark.parametrize("at", ["looking", "sleeping"])
def test_a_worker_that_is_about_to_sleep_sees_the_next_job(stage: Stage, at: str) -> None:
    stage.hold = at
    pool = Pool(2, stage)
    assert stage.held.acquire(timeout=PATIENCE)
    meeting = Meeting(2)

    def kernel(begin: int, end: int) -> None:
        stage.go_on.set()  # the job is there, and whom it found asleep was woken
        meeting(begin, end)

    within_patience(lambda: pool.run((kernel, 2)))
    assert meeting.met == 2 and not meeting.missed
    within_patience(pool.destroy)


@pytest.mark.parametrize("at", ["looking", "sleeping"])
def test_a_worker_that_is_about_to_sleep_sees_the_end(stage: Stage, at: str) -> None:
    stage.hold = at
    pool = Pool(2, stage)
    assert stage.held.acquire(timeout=PATIENCE)
    with doing(pool.destroy) as destroyed:
        assert stage.woken.wait(PATIENCE)
        assert not destroyed.wait(0.1)  # its memory is used
        stage.go_on.set()


def test_workers_that_sleep_end(stage: Stage) -> None:
    pool = Pool(3, stage)
    stage.all_sleep(2)
    within_patience(pool.destroy)


def test_a_pool_serves_one_caller_at_a_time(stage: Stage) -> None:
    """Another does its tasks itself; afterwards the pool serves again."""
    pool = Pool(2, stage)
    inside, go_on = threading.Semaphore(0), threading.Event()
    seen: list[tuple[int, int]] = []

    def first(begin: int, end: int) -> None:
        inside.release()
        assert go_on.wait(PATIENCE)
        seen.append((begin, end))

    with doing(lambda: pool.run((first, 2))):
        for _ in range(2):
            assert inside.acquire(timeout=PATIENCE)
        alone: list[tuple[int, int, bool]] = []
        me: list[int] = []

        def second() -> None:
            me[:] = [threading.get_ident()]
            pool.run((lambda begin, end: alone.append((begin, end, threading.get_ident() == me[0])), 7))

        for _ in range(2):  # the end of one that does them itself does not give the pool away
            within_patience(second)
        go_on.set()
    assert alone == [(0, 7, True)] * 2 and sorted(seen) == [(0, 1), (1, 2)]
    meet(pool, 2)
    within_patience(pool.destroy)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_the_caller_is_one_of_the_threads(stage: Stage, threads: int) -> None:
    stage.workers_left = threads - 1
    pool = Pool(threads, stage)
    assert pool.address and stage.workers_left == 0
    meet(pool, threads)
    within_patience(pool.destroy)


def test_a_pool_that_the_system_has_no_threads_for(stage: Stage) -> None:
    """The workers that it gave have ended."""
    stage.workers_left, stage.hold = 2, "sleeping"
    pools: list[Pool] = []
    with doing(lambda: pools.append(Pool(4, stage))) as refused:
        assert stage.woken.wait(PATIENCE)
        assert not refused.wait(0.1) or not stage.held.acquire(blocking=False)
        stage.go_on.set()
    assert pools[0].address == 0


@pytest.mark.parametrize("threads", [0, -1, 1 << 31, 1 << 61])
def test_a_pool_of_no_number_of_threads(stage: Stage, threads: int) -> None:
    assert Pool(threads, stage).address == 0
