"""What is over says so to all threads that wait, also where an interrupt hit some of them."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from landbridge.vm.completion import Completion


def test_an_interrupted_wait_leaves_it_to_be_set() -> None:
    """As a signal may come at any moment, many do."""

    def strike(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, strike)
    try:
        for number in range(300):
            over = Completion()
            with pytest.raises(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, 20e-6 + number * 1e-6)
                while True:
                    over.wait(10e-6)
            setter = threading.Thread(target=over.set)
            setter.start()
            assert over.wait(60)
            setter.join(60)
            assert not setter.is_alive()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_all_that_wait_are_told() -> None:
    over, told = Completion(), []
    waiting = [threading.Thread(target=lambda: told.append(over.wait(60))) for _ in range(4)]
    for thread in waiting:
        thread.start()
    time.sleep(0.01)
    assert not over.is_set() and not over.wait(0)
    over.set()
    for thread in waiting:
        thread.join(60)
    assert told == [True] * 4 and over.is_set() and over.wait()
