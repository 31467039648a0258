"""A lock that is waited for while its owner takes it again and again."""

from __future__ import annotations

import threading
import time

from landbridge.vm.token_lock import NOBODY, TokenLock


def test_an_owner_that_takes_it_again_at_once_hands_it_over() -> None:
    lock, stop, taken = TokenLock(), threading.Event(), threading.Event()

    def uses_it_all_the_time() -> None:
        while not stop.is_set():
            try:
                token = lock.take()
            except IndexError:
                continue
            time.sleep(0.01)
            lock.give_back(token)
            del token

    def waits() -> None:
        for _ in range(20):
            with lock.waited_for():
                assert not lock.free
        taken.set()

    threads = [threading.Thread(target=each, daemon=True) for each in (uses_it_all_the_time, waits, waits)]
    for thread in threads:
        thread.start()
    is_taken = taken.wait(20)
    stop.set()
    threads[0].join(20)
    assert is_taken
    for thread in threads[1:]:
        thread.join(20)
        assert not thread.is_alive()
    assert len(lock.free) == 1


def test_waiting_for_a_lock_that_this_thread_holds_waits_for_nobody() -> None:
    lock = TokenLock()
    with lock.waited_for():
        with lock.waited_for():
            assert lock.owner == threading.get_ident() and not lock.free
        assert lock.owner == threading.get_ident() and not lock.free
    assert lock.owner == NOBODY and len(lock.free) == 1
