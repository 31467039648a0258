"""Dependences name every step that must come first, directly or by way of others, and no step that need not."""

from __future__ import annotations

from random import Random

from landbridge.vm.dependences import Touch, any_conflict, dependences


def test_readers_follow_the_writer_and_the_next_writer_follows_them() -> None:
    write, read = Touch("m", 0, 8, True), Touch("m", 0, 8, False)
    assert dependences([[write], [read], [read], [write], [read]]) == [set(), {0}, {0}, {1, 2}, {3}]


def test_parts_are_separate() -> None:
    whole, left, right = Touch("m", 0, 8, True), Touch("m", 0, 4, True), Touch("m", 4, 8, False)
    elsewhere, nothing = Touch("n", 0, 8, True), Touch("m", 3, 3, True)
    assert dependences([[whole], [left], [right], [elsewhere], [nothing], [whole]]) == [
        set(),
        {0},
        {0},
        set(),
        set(),
        {1, 2},
    ]


def test_a_step_does_not_follow_itself() -> None:
    write, read = Touch("m", 0, 8, True), Touch("m", 2, 6, False)
    assert dependences([[write, read], [read, write]]) == [set(), {0}]


def test_they_are_those_of_conflicts() -> None:
    """With all that steps follow indirectly, dependences are the pairs that conflict, and what these imply."""
    random = Random(1)
    for _ in range(300):
        steps = [[_touch(random) for _ in range(random.randrange(4))] for _ in range(12)]
        pairs = [
            {other for other in range(number) if any_conflict(steps[other], steps[number])}
            for number in range(len(steps))
        ]
        assert closed(dependences(steps)) == closed(pairs)


def _touch(random: Random) -> Touch:
    start = random.randrange(20)
    return Touch(random.choice("mn"), start, start + random.randrange(1, 9), random.random() < 0.5)


def closed(before: list[set[int]]) -> list[set[int]]:
    """All that each step follows, directly or not."""
    found: list[set[int]] = []
    for direct in before:
        found.append(direct.union(*(found[other] for other in direct)))
    return found
