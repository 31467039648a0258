"""Decide one capacity: every order gets a turn, on as many threads as there are racers."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from landbridge.planner.exact.kernel import FOUND, REFUTED, STOPPED
from landbridge.planner.exact.racer import Racer


def race(racers: Sequence[Racer], ranks: Sequence[Sequence[int]], node_limit: int, deadline: float) -> Racer | None:
    """The racer that decided, or None when every turn ended at ``node_limit`` nodes or at ``deadline``.

    Order n is always the business of racer n modulo their number, and of those that find a plan in one round the
    one with the first order wins, so the answer does not depend on the threads' speed, except at the deadline
    (``time.perf_counter`` seconds).
    """
    for begin in range(0, len(ranks), len(racers)):
        entered = list(zip(racers, ranks[begin : begin + len(racers)], strict=False))
        threads = [threading.Thread(target=racer.turn, args=(rank, node_limit), daemon=True) for racer, rank in entered]
        for thread in threads:
            thread.start()
        winner = _first(threads, [racer for racer, _ in entered], deadline)
        if winner is not None or time.perf_counter() >= deadline:
            return winner
    return None


def _first(threads: Sequence[threading.Thread], racers: Sequence[Racer], deadline: float) -> Racer | None:
    try:
        for thread, racer in zip(threads, racers, strict=True):
            thread.join(max(0.0, deadline - time.perf_counter()))
            if not thread.is_alive() and racer.outcome != STOPPED:
                return racer
    finally:
        for racer in racers:
            racer.stop()
        for thread in threads:
            thread.join()
        for racer in racers:
            racer.stop(False)
    return next((racer for racer in racers if racer.outcome in (FOUND, REFUTED)), None)
