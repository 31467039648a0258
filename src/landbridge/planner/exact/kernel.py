"""The search kernel, in the subset of Python that numba compiles: integers, loops, flat sequences; no objects.

A *state* is the set of unplaced buffers with the least offset each can still take. A section's *floor* is the lowest of
those offsets among its unplaced buffers. On a run of sections with equal floors between higher ones, a buffer that fits
the floor has nothing left that could go below it; so it is complete to pick one section of such a run and branch: one
of the buffers at the floor is placed there, or none is, and all of them rise to the lowest top that could carry them
(every plan can be pushed down until each buffer stands on its least offset or on another).

Pruning: floor plus bytes yet to place above the capacity; a buffer above the latest offset it may take; a state refuted
before. Where no unplaced buffer crosses, the sections left and right are separate states: each is solved alone, and one
refuted on its own refutes the decision that cut it off, whatever the others did.

A state is identified by two sums of 61 bits with random factors; two states collide in both with odds of 2**-100.

The section to branch on is the one with the fewest choices for each time it has refuted something (after dom/wdeg:
Boussemart, Hemery, Lecoutre, Sais, "Boosting systematic search by weighting constraints", ECAI 2004). Sums over
sections and the order by offset follow Moffitt, "MiniMalloc", ASPLOS 2023; branching on a section's floor, the weights
and the memory of refuted parts do not.
"""

from __future__ import annotations

from landbridge.planner.exact.problem import Problem
from landbridge.planner.exact.state import AGENDA, FRAME, SearchState

FOUND, REFUTED, STOPPED = 1, 0, -1

#: Fields of ``top``: entries on the trail, buffers placed, candidates, agenda entries, moves, nodes.
_TRAIL, _PLACED, _CANDIDATES, _AGENDA, _MOVES, _NODES = 0, 1, 2, 3, 4, 5
#: Fields of a frame. A frame is one state on the path; ``_PARENT`` is the frame whose decision led to it.
_LEFT, _RIGHT, _PARENT, _NEXT_STATE, _TRAIL_MARK, _PLACED_MARK = 0, 1, 2, 3, 4, 5
_BEGIN, _END, _NEXT, _SECTION, _AGENDA_MARK, _HASH = 6, 7, 8, 9, 10, 11
#: Low bits of a product are equal in Python's integers and in 64-bit ones that wrap.
_MASK = (1 << 61) - 1
_NOBODY = -1


def search(p: Problem, s: SearchState, capacity: int, node_limit: int) -> int:
    """Returns FOUND with a plan in ``s.offset``, REFUTED if none exists, STOPPED at ``node_limit`` or by ``s.stop``.

    ``capacity`` in units; ``s.latest`` must agree with it. Each call starts from the root; weights and refuted states
    stay, and hold for any capacity and latest offsets that are not larger.
    """
    frame, top, agenda = s.frame, s.top, s.agenda
    sections = len(s.floor)
    _undo(p, s, 0, 0)
    top[_CANDIDATES] = top[_AGENDA] = top[_NODES] = 0
    top[_MOVES] += 1
    for q in range(sections):
        s.dirty[q] = top[_MOVES]
    if not _refresh(p, s, capacity, 0, sections):
        return REFUTED
    depth = head = -1
    left, right = 0, sections
    alive = True
    while True:
        if alive:
            head = _split(p, s, left, right, depth, head)
            alive = head >= -1
        if alive:
            if head < 0:
                return FOUND
            top[_NODES] += 1
            if top[_NODES] > node_limit or s.stop[0] or not _capacity(s, depth):
                return STOPPED
            depth += 1
            at, entry = depth * FRAME, head * AGENDA
            left, right = agenda[entry], agenda[entry + 1]
            frame[at + _LEFT], frame[at + _RIGHT] = left, right
            frame[at + _PARENT], frame[at + _NEXT_STATE] = agenda[entry + 2], agenda[entry + 3]
            frame[at + _TRAIL_MARK], frame[at + _PLACED_MARK] = top[_TRAIL], top[_PLACED]
            frame[at + _AGENDA_MARK], frame[at + _HASH] = top[_AGENDA], head
            q = _choose(s, capacity, left, right)
            frame[at + _SECTION] = q
            frame[at + _BEGIN] = frame[at + _NEXT] = top[_CANDIDATES]
            _list_candidates(p, s, capacity, q)
            frame[at + _END] = top[_CANDIDATES]
        while True:
            if depth < 0:
                return REFUTED
            at = depth * FRAME
            _undo(p, s, frame[at + _TRAIL_MARK], frame[at + _PLACED_MARK])
            top[_AGENDA], top[_CANDIDATES] = frame[at + _AGENDA_MARK], frame[at + _END]
            if frame[at + _NEXT] < frame[at + _END]:
                break
            entry = frame[at + _HASH] * AGENDA
            known = (agenda[entry + 4] ^ (agenda[entry + 4] >> 31)) & (len(s.refuted1) - 1)
            s.refuted1[known], s.refuted2[known] = agenda[entry + 4], agenda[entry + 5]
            top[_CANDIDATES] = frame[at + _BEGIN]
            depth = frame[at + _PARENT]
        j = s.candidate[frame[at + _NEXT]]
        frame[at + _NEXT] += 1
        left, right, head = frame[at + _LEFT], frame[at + _RIGHT], frame[at + _NEXT_STATE]
        if j == _NOBODY:
            alive = _leave(p, s, capacity, frame[at + _SECTION], left, right)
        else:
            alive = _place(p, s, capacity, j, left, right)


def _split(p: Problem, s: SearchState, left: int, right: int, parent: int, head: int) -> int:
    """Divide the sections ``left`` to ``right`` where no unplaced buffer crosses, and put a state for each part on the
    agenda before ``head``.

    Returns the new head of the agenda (-1: empty), or -2 when one of the states was refuted before.
    """
    agenda, top = s.agenda, s.top
    a = left
    while a < right:
        if s.unplaced[a] == 0:
            a += 1
            continue
        b = a + 1
        while b < right and s.cut[b] > 0:
            b += 1
        hash1 = hash2 = 0
        for j in range(p.starting_at[a], p.starting_at[b]):
            if not s.placed[j]:
                hash1 += p.key1[j] * (s.offset[j] + 1)
                hash2 += p.key2[j] * (s.offset[j] + 1)
        hash1 &= _MASK
        hash2 &= _MASK
        known = (hash1 ^ (hash1 >> 31)) & (len(s.refuted1) - 1)
        if s.refuted1[known] == hash1 and s.refuted2[known] == hash2:
            return -2
        entry = top[_AGENDA] * AGENDA
        agenda[entry], agenda[entry + 1], agenda[entry + 2], agenda[entry + 3] = a, b, parent, head
        agenda[entry + 4], agenda[entry + 5] = hash1, hash2
        head = top[_AGENDA]
        top[_AGENDA] += 1
        a = b
    return head


def _choose(s: SearchState, capacity: int, left: int, right: int) -> int:
    """Returns the section to branch on.

    Considers the runs of sections of equal floor between sections with a higher floor. Takes the section with the
    fewest choices, divided by its weight.
    """
    floor = s.floor
    best, best_score = -1, 0.0
    a = left
    while a < right:
        b = a + 1
        while b < right and floor[b] == floor[a]:
            b += 1
        if (a == left or floor[a - 1] > floor[a]) and (b == right or floor[b] > floor[a]):
            for q in range(a, b):
                may_leave = 1 if floor[q] + s.total[q] < capacity else 0
                score = (s.lowest[q] - 1 + may_leave) / s.weight[q]
                if best < 0 or score < best_score:
                    best, best_score = q, score
        a = b
    return best


def _list_candidates(p: Problem, s: SearchState, capacity: int, q: int) -> None:
    """List the unplaced buffers whose least offset is the floor of section ``q``, by rank; of equal buffers only one.

    If the bytes of the section leave room above the floor, ``_NOBODY`` is the last candidate.
    """
    candidate, top = s.candidate, s.top
    begin = end = top[_CANDIDATES]
    for x in range(p.section_at[q], p.section_at[q] + s.unplaced[q]):
        j = s.live[x]
        if s.offset[j] != s.floor[q]:
            continue
        twin = False
        for y in range(begin, end):
            k = candidate[y]
            if (
                p.first[k] == p.first[j]
                and p.last[k] == p.last[j]
                and p.size[k] == p.size[j]
                and p.alignment[k] == p.alignment[j]
                and s.latest[k] == s.latest[j]
            ):
                twin = True
        if twin:
            continue
        y = end
        while y > begin and s.rank[candidate[y - 1]] > s.rank[j]:
            candidate[y] = candidate[y - 1]
            y -= 1
        candidate[y] = j
        end += 1
    if s.floor[q] + s.total[q] < capacity:
        candidate[end] = _NOBODY
        end += 1
    top[_CANDIDATES] = end


def _place(p: Problem, s: SearchState, capacity: int, j: int, left: int, right: int) -> bool:
    """Place ``j`` at its least offset and raise the buffers that conflict with it above it; returns False if that
    visibly fails.
    """
    top, live, slot = s.top, s.live, s.slot
    top[_MOVES] += 1
    move = top[_MOVES]
    s.placed[j] = 1
    s.order[top[_PLACED]] = j
    top[_PLACED] += 1
    for q in range(p.first[j], p.last[j]):
        s.total[q] -= p.size[j]
        s.unplaced[q] -= 1
        s.dirty[q] = move
        if q > p.first[j]:
            s.cut[q] -= 1
        # Swap j with the last live one; undoing in reverse order needs only the count.
        end = p.section_at[q] + s.unplaced[q]
        location = s.slot_at[j] + q - p.first[j]
        k = live[end]
        other = s.slot_at[k] + q - p.first[k]
        live[slot[location]], live[end] = k, j
        slot[other], slot[location] = slot[location], end
    end = s.offset[j] + p.size[j]
    for x in range(p.conflict_at[j], p.conflict_at[j + 1]):
        k = p.conflict[x]
        if not s.placed[k] and s.offset[k] < end and not _raise(p, s, k, end, move):
            return False
    return _refresh(p, s, capacity, left, right)


def _leave(p: Problem, s: SearchState, capacity: int, q: int, left: int, right: int) -> bool:
    """Let no candidate stand on the floor of section ``q``; returns False, blaming a section, if that visibly fails.

    Each candidate then stands on another buffer. Its least offset is raised to the least top of a conflicting unplaced
    buffer that is no candidate; or, for all but the lowest, to the least such top plus the size of the smallest other
    candidate.
    """
    top, candidate = s.top, s.candidate
    top[_MOVES] += 1
    floor, begin, end = s.floor[q], p.section_at[q], p.section_at[q] + s.unplaced[q]
    scratch = top[_CANDIDATES]
    never = capacity + 1
    lowest = small = next_small = never
    for x in range(begin, end):
        j = s.live[x]
        if s.offset[j] != floor:
            continue
        if p.size[j] < small:
            small, next_small = p.size[j], small
        elif p.size[j] < next_small:
            next_small = p.size[j]
        carried = never
        for y in range(p.conflict_at[j], p.conflict_at[j + 1]):
            k = p.conflict[y]
            if not s.placed[k] and not (s.offset[k] == floor and p.first[k] <= q < p.last[k]):
                carried = min(carried, s.offset[k] + p.size[k])
        candidate[scratch + x - begin] = carried
        lowest = min(lowest, carried)
    for x in range(begin, end):
        j = s.live[x]
        if s.offset[j] != floor:
            continue
        other = next_small if p.size[j] == small else small
        to = min(candidate[scratch + x - begin], lowest + other)
        if to >= never or not _raise(p, s, j, to, top[_MOVES]):
            return False
    return _refresh(p, s, capacity, left, right)


def _raise(p: Problem, s: SearchState, j: int, to: int, move: int) -> bool:
    """Raise the least offset of ``j`` to ``to``, rounded up to its alignment.

    Returns False, blaming the sections of ``j``, if that is above the latest offset it may have.
    """
    to = -(-to // p.alignment[j]) * p.alignment[j]
    if to > s.latest[j]:
        for q in range(p.first[j], p.last[j]):
            s.weight[q] += 1
        return False
    old = s.offset[j]
    t = s.top[_TRAIL]
    s.trail[t], s.trail_old[t] = j, old
    s.top[_TRAIL] = t + 1
    s.offset[j] = to
    for q in range(p.first[j], p.last[j]):
        if s.floor[q] == old:
            s.dirty[q] = move
    return True


def _refresh(p: Problem, s: SearchState, capacity: int, left: int, right: int) -> bool:
    """Update the floors of the sections ``left`` to ``right`` that the last move changed.

    Returns False, blaming the section, if the unplaced bytes of one do not fit above its floor.
    """
    n = len(s.placed)
    move = s.top[_MOVES]
    for q in range(left, right):
        if s.dirty[q] != move or s.unplaced[q] == 0:
            continue
        floor, lowest = capacity + 1, 0
        for x in range(p.section_at[q], p.section_at[q] + s.unplaced[q]):
            offset = s.offset[s.live[x]]
            if offset < floor:
                floor, lowest = offset, 1
            elif offset == floor:
                lowest += 1
        if floor != s.floor[q] or lowest != s.lowest[q]:
            t = s.top[_TRAIL]
            s.trail[t], s.trail_old[t], s.trail_lowest[t] = n + q, s.floor[q], s.lowest[q]
            s.top[_TRAIL] = t + 1
            s.floor[q], s.lowest[q] = floor, lowest
        if floor + s.total[q] > capacity:
            s.weight[q] += 1
            return False
    return True


def _undo(p: Problem, s: SearchState, trail_mark: int, placed_mark: int) -> None:
    """Undo moves until the trail and the placed buffers are as long as the marks."""
    n = len(s.placed)
    for t in range(s.top[_TRAIL] - 1, trail_mark - 1, -1):
        i = s.trail[t]
        if i < n:
            s.offset[i] = s.trail_old[t]
        else:
            s.floor[i - n], s.lowest[i - n] = s.trail_old[t], s.trail_lowest[t]
    s.top[_TRAIL] = trail_mark
    for t in range(s.top[_PLACED] - 1, placed_mark - 1, -1):
        j = s.order[t]
        s.placed[j] = 0
        for q in range(p.first[j], p.last[j]):
            s.total[q] += p.size[j]
            s.unplaced[q] += 1
            if q > p.first[j]:
                s.cut[q] += 1
    s.top[_PLACED] = placed_mark


def _capacity(s: SearchState, depth: int) -> bool:
    """Returns whether the SearchState's memory has room for one more frame and for all that one move can add to it."""
    n, sections, top = len(s.placed), len(s.floor), s.top
    return (
        (depth + 2) * FRAME <= len(s.frame)
        and top[_CANDIDATES] + 2 * n + 2 <= len(s.candidate)
        and (top[_AGENDA] + sections + 1) * AGENDA <= len(s.agenda)
        and top[_TRAIL] + n + sections <= len(s.trail)
    )
