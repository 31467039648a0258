"""Decides one capacity by racing searches with different orders."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from landbridge.planner.exact.kernel import STOPPED
from landbridge.planner.exact.racer import Racer
from landbridge.process.background_threads import check_threads


def race(racers: Sequence[Racer], threads: int, node_limit: int, deadline: float) -> tuple[Racer, int] | None:
    """Returns the racer that decided and its answer, or None when all searches ended at ``node_limit`` nodes or
    ``deadline``.

    ``threads`` racers run at a time, and of those that decide in one round the first in order wins, so the answer does
    not depend on the threads' speed, except at the deadline (``time.perf_counter`` seconds).
    """
    check_threads(threads)
    with ThreadPoolExecutor(threads, "planner") as pool:
        for begin in range(0, len(racers), threads):
            entered = racers[begin : begin + threads]
            searches = [pool.submit(racer.search, node_limit) for racer in entered]
            winner = _first(entered, searches, deadline)
            if winner is not None or time.perf_counter() >= deadline:
                return winner
    return None


def luby(n: int) -> int:
    """Returns term n >= 1 of the Luby sequence 1 1 2 1 1 2 4 1 1 2 ..., used as restart lengths.

    These are within a constant factor of the best for any search (Luby, Sinclair, Zuckerman, "Optimal speedup of Las
    Vegas algorithms", 1993).
    """
    while (n + 1) & n:
        n -= (1 << (n.bit_length() - 1)) - 1
    return (n + 1) >> 1


def _first(racers: Sequence[Racer], searches: Sequence[Future[int]], deadline: float) -> tuple[Racer, int] | None:
    try:
        # Each search ends by itself, also when another has decided: what a racer learns must not depend on the clock.
        wait(searches, max(0.0, deadline - time.perf_counter()))
    finally:
        for racer in racers:
            racer.stop()
        answers = [search.result() for search in searches]
        for racer in racers:
            racer.stop(False)
    return next(((racer, answer) for racer, answer in zip(racers, answers, strict=True) if answer != STOPPED), None)
