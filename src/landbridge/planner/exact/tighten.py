"""Lowers a plan's peak by exact search: first at the bound, then between the bound and the best plan so far."""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import gcd

from landbridge.planner.buffers import Buffer
from landbridge.planner.exact import kernel
from landbridge.planner.exact.compiled import Search, compiled_search
from landbridge.planner.exact.orders import ORDERS, ranks
from landbridge.planner.exact.problem import scaled
from landbridge.planner.exact.race import luby, race
from landbridge.planner.exact.racer import Racer
from landbridge.planner.greedy import peak

#: The least seconds for which loading (or making) machine code pays; below, the kernel is interpreted.
COMPILED_FROM = 2.0
#: The share of the time for the bound, before anything above it is tried.
_AT_BOUND = 0.4
#: Restarts in which weights are learned. After them, and at every new target, learning starts from random weights, with
#: node limits in Luby's sequence: most plans are found within a few restarts of a lucky beginning, or not at all.
_CHAIN = 24
#: Nodes of the shortest search, times the buffers: once the weights say which sections are hard, a plan takes about one
#: node per buffer, and restarts teach the weights.
_NODES = 4
#: The most pairs of conflicting buffers for which the memory of a search (some 50 bytes per pair and order) is spent.
_MOST_PAIRS = 500_000


def suits(conflicts: Sequence[Sequence[int]]) -> bool:
    """Returns whether buffers with these conflicts are few enough for an exact search."""
    return sum(map(len, conflicts)) <= 2 * _MOST_PAIRS


def tighten(
    buffers: Sequence[Buffer],
    conflicts: Sequence[Sequence[int]],
    offsets: Sequence[int],
    bound: int,
    capacity: int | None,
    deadline: float,
    compiled: bool | None = None,
    goal: int = 0,
) -> tuple[list[int], int]:
    """Returns offsets with a peak no higher than that of ``offsets``, and a lower bound no lower than ``bound`` bytes.

    At most `_AT_BOUND` of the time goes into plans at the bound; then come sweeps over the targets above it, and the
    bound once more, each with twice the effort of the last. A peak that equals the bound returned is optimal. A peak of
    ``goal`` bytes is good enough, even above the bound. Equal input takes equal steps; how many of them fit before
    ``deadline`` (``time.perf_counter`` seconds) depends on the machine. ``compiled`` None means: if `COMPILED_FROM`
    seconds are left, and numba is installed.
    """
    now = time.perf_counter()
    if peak(buffers, offsets) <= max(bound, goal) or now >= deadline or not suits(conflicts):
        return list(offsets), bound
    hunt = _Hunt(buffers, conflicts, offsets, bound, goal)
    if compiled is None:
        compiled = deadline - now >= COMPILED_FROM
    search = compiled_search() if compiled else None
    racers = hunt.racers(search)
    if search is not None:  # making or loading machine code is not part of the budget
        deadline += time.perf_counter() - now
        now = time.perf_counter()
    share = now + (deadline - now) * _AT_BOUND
    restart = 0
    while hunt.open(share):
        hunt.decide(racers, hunt.least(), restart, share)
        restart += 1
    effort = _CHAIN
    while hunt.open(deadline):
        hunt.sweep(racers, capacity, effort, deadline)
        effort *= 2
    return hunt.offsets, hunt.bound


class _Hunt:
    """The best plan so far and the bound so far, with the steps that bring them together."""

    def __init__(
        self,
        buffers: Sequence[Buffer],
        conflicts: Sequence[Sequence[int]],
        offsets: Sequence[int],
        bound: int,
        goal: int,
    ) -> None:
        self._buffers = buffers
        self._scaled = scaled(buffers, conflicts)
        self._step = gcd(self._scaled.unit, *(b.size for b in buffers))  # every peak is a multiple of it
        self.offsets = [0 if b.size == 0 and b.offset is None else o for b, o in zip(buffers, offsets, strict=True)]
        self.peak = peak(buffers, self.offsets)
        self.bound = bound
        self._goal = goal
        self._threads = 1
        self._chains = 0
        self._nodes = _NODES * len(self._scaled.members)

    def racers(self, search: Search | None) -> list[Racer]:
        """Returns a racer for each order; interpreted without ``search``, and if bytes do not fit its 64-bit
        integers."""
        if sum(b.size + b.alignment for b in self._buffers) + self.peak >= 1 << 62:
            search = None
        self._threads = 1 if search is None else 2  # two interpreted searches would only alternate
        run, bits = (kernel.search, 12) if search is None else (search, 18)
        problem = self._scaled.problem
        orders = [ranks(problem, name) for name in ORDERS]
        first = Racer(problem, orders[0], run, bits)
        racers = [first, *(first.sibling(rank) for rank in orders[1:])]
        if search is not None:
            first.sibling(orders[0]).search(0)  # the first call of all compiles
        return racers

    def open(self, deadline: float) -> bool:
        return self.peak > self.least() and time.perf_counter() < deadline

    def least(self) -> int:
        """Returns the lowest peak worth a search, rounded down to a possible one."""
        return max(self.bound, self._goal // self._step * self._step)

    def decide(self, racers: list[Racer], target: int, restart: int, deadline: float) -> bool:
        """Returns whether a plan within ``target`` bytes was found at this ``restart`` (from 0) of a series.

        Retains the plan, or the bound that a refutation gives.
        """
        members, unit, latest = self._scaled.members, self._scaled.unit, []
        for i in members:
            b = self._buffers[i]
            latest.append((target - b.size if b.offset is None else b.offset) // unit)
        for racer in racers:
            racer.aim(-(-target // unit), latest)
        if restart % _CHAIN == 0:
            if self._chains:
                for number, racer in enumerate(racers):
                    racer.relearn(self._chains * len(racers) + number)
            self._chains += 1
        decided = race(racers, self._threads, luby(1 + restart // _CHAIN) * self._nodes, deadline)
        if decided is None:
            return False
        winner, answer = decided
        if answer == kernel.REFUTED:
            self.bound = max(self.bound, target + self._step)
            return False
        for i, offset in zip(members, winner.offsets(), strict=True):
            self.offsets[i] = offset * unit
        self.peak = peak(self._buffers, self.offsets)
        racers.insert(0, racers.pop(racers.index(winner)))  # the order that suited this target may suit the next
        return True

    def sweep(self, racers: list[Racer], capacity: int | None, effort: int, deadline: float) -> None:
        """Search at ``capacity`` while no plan meets it, then bisect between the bound and the best peak, then try the
        bound.

        A target neither reached nor refuted in ``effort`` restarts is given up, with all below it, until the next
        sweep.
        """
        failed = self.least() + self._step  # the bound was tried last
        while failed < self.peak and self.open(deadline):
            if capacity is not None and failed <= capacity < self.peak:
                target = capacity // self._step * self._step
            else:
                target = max(failed, (failed + self.peak - self._step) // (2 * self._step) * self._step)
            if not self._reached(racers, target, effort, deadline):
                failed = target + self._step
        self._reached(racers, self.least(), effort, deadline)

    def _reached(self, racers: list[Racer], target: int, effort: int, deadline: float) -> bool:
        return any(self.decide(racers, target, restart, deadline) for restart in range(effort) if self.open(deadline))
