"""SearchState: the mutable data of a search: offsets, sections, the undo trail, the frames, and the refuted states."""

from __future__ import annotations

from typing import NamedTuple

from landbridge.planner.exact.problem import Ints, Problem


class SearchState(NamedTuple):
    """Working memory of one search; only `landbridge.planner.exact.kernel` reads and writes it.

    By buffer: ``offset`` (of a placed one, else the least it can still take), ``placed``, ``latest`` (the most it may
    take), ``rank`` (which candidate first), ``slot_at`` and ``slot`` (its position in each of its sections' ``live``
    lists). By section: ``floor`` (least offset of an unplaced buffer), ``lowest`` (how many have it), ``unplaced`` (how
    many there are), ``total`` (their bytes), ``cut`` (how many cross from the section before), ``weight`` (how often it
    refuted), ``dirty`` (the move that changed it).
    """

    rank: Ints
    latest: Ints
    offset: Ints
    placed: Ints
    slot_at: Ints
    slot: Ints
    live: Ints
    floor: Ints
    lowest: Ints
    total: Ints
    unplaced: Ints
    cut: Ints
    weight: Ints
    dirty: Ints
    order: Ints
    candidate: Ints
    trail: Ints
    trail_old: Ints
    trail_lowest: Ints
    frame: Ints
    agenda: Ints
    refuted1: Ints
    refuted2: Ints
    top: Ints
    stop: Ints


#: Integers per frame and per agenda entry; the kernel names the fields.
FRAME, AGENDA = 12, 6
_MOST_CANDIDATES = 1 << 20


def new_state(problem: Problem) -> SearchState:
    """Returns a SearchState with nothing placed and no table of refuted states, which needs ``2 ** k`` entries, -1."""
    n, sections = len(problem.size), len(problem.section_at) - 1
    spans = [range(problem.first[j], problem.last[j]) for j in range(n)]
    slot_at, slot, filled = [0], [], [problem.section_at[q] for q in range(sections)]
    total, cut = [0] * sections, [0] * (sections + 1)
    for j, span in enumerate(spans):
        for q in span:
            slot.append(filled[q])
            filled[q] += 1
            total[q] += problem.size[j]
            cut[q] += q > span.start
        slot_at.append(len(slot))
    most = max((problem.section_at[q + 1] - problem.section_at[q] for q in range(sections)), default=0)
    deepest = 4 * n + 64
    capacity = len(problem.conflict) + 32 * (n + sections) + 1024
    return SearchState(
        rank=list(range(n)),
        latest=[0] * n,
        offset=list(_copied(problem.base)),
        placed=[0] * n,
        slot_at=slot_at,
        slot=slot,
        live=list(_copied(problem.section)),
        floor=[-1] * sections,
        lowest=[0] * sections,
        total=total,
        unplaced=[problem.section_at[q + 1] - problem.section_at[q] for q in range(sections)],
        cut=cut,
        weight=[1] * sections,
        dirty=[0] * sections,
        order=[0] * n,
        candidate=[0] * min(deepest * (most + 1) + 2 * n + 2, _MOST_CANDIDATES),
        trail=[0] * capacity,
        trail_old=[0] * capacity,
        trail_lowest=[0] * capacity,
        frame=[0] * (deepest * FRAME),
        agenda=[0] * ((deepest * 4 + sections) * AGENDA),
        refuted1=[-1],
        refuted2=[-1],
        top=[0] * 8,
        stop=[0],
    )


def _copied(values: Ints) -> list[int]:
    return [values[i] for i in range(len(values))]
