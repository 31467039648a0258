from __future__ import annotations

import threading

import numpy as np
import pytest

from landbridge.process import background_threads
from landbridge.process.background_threads import begin, in_parts


def test_a_thread_works_until_it_is_requested() -> None:
    names: list[str] = []
    finish = begin(lambda: names.append(threading.current_thread().name) or len(names), "named")
    assert finish() == 1 and names == ["named"]
    assert finish() == 1


def test_what_it_raises_is_raised_where_it_is_requested() -> None:
    finish = begin(lambda: 1 // 0, "named")
    with pytest.raises(ZeroDivisionError):
        finish()


def test_without_more_threads_work_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    names: list[str] = []
    begin(lambda: names.append(threading.current_thread().name), "named")()
    in_parts(lambda a, b: names.append(threading.current_thread().name), 8, 8 << 20)
    assert set(names) == {threading.current_thread().name}


@pytest.mark.parametrize(
    ("count", "nbytes", "cores", "parts"),
    [
        (9, 8 << 20, 2, 2),
        (9, 8 << 20, 1, 1),
        (9, 100, 8, 1),
        (3, 8 << 20, 8, 3),
        (99, 1 << 30, 64, 4),
        (1, 1 << 30, 8, 1),
    ],
)
def test_parts_cover_all_once(count: int, nbytes: int, cores: int, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_threads, "_cores", lambda: cores)
    found_any = np.zeros(count, int)
    begun: list[int] = []

    def work(begin: int, end: int) -> None:
        found_any[begin:end] += 1
        begun.append(begin)

    in_parts(work, count, nbytes)
    assert (found_any == 1).all() and len(begun) == parts


@pytest.mark.parametrize("failing", [0, 1, 2, 3])
def test_a_part_that_fails_fails_all_when_no_part_works_any_more(failing: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_threads, "_cores", lambda: 4)
    ended: list[int] = []

    def work(begin: int, end: int) -> None:
        ended.append(begin)
        if begin == failing:
            raise ValueError(begin)

    with pytest.raises(ValueError, match=str(failing)):
        in_parts(work, 4, 4 << 20)
    assert sorted(ended) == [0, 1, 2, 3]
