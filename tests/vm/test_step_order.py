"""Devices get their work as early as dependences allow, and the host waits for it as late."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from landbridge.vm.dependences import Touch, any_conflict
from landbridge.vm.step_order import Item, by_dependences

DEVICE: Any = object()
OTHER: Any = object()


def read(memory: str) -> Touch:
    return Touch(memory, 0, 8, False)


def write(memory: str) -> Touch:
    return Touch(memory, 0, 8, True)


def host(name: str, *touched: Touch) -> Item[str]:
    return Item(name, None, touched)


def kernel(name: str, *touched: Touch, device: Any = DEVICE) -> Item[str]:
    return Item(name, device, touched)


def order(*items: Item[str]) -> list[str]:
    return [item.subject for item in by_dependences(items)]


def test_devices_get_their_work_early() -> None:
    steps = [host(f"host {n}", Touch("h", n, n + 1, True)) for n in range(3)]
    first = kernel("kernel", write("d"), Touch("h", 0, 1, False))
    back = kernel("back", read("d"), Touch("h", 1, 2, True))
    assert order(*steps, first) == ["host 0", "kernel", "host 1", "host 2"]
    assert order(*steps, first, back) == ["host 0", "kernel", "host 1", "back", "host 2"]


def test_what_a_device_needs_comes_first() -> None:
    slow, copy = host("slow", read("x"), write("z")), host("copy", read("x"), write("there"))
    assert order(slow, copy, kernel("kernel", read("there"), write("y"))) == ["copy", "kernel", "slow"]


@pytest.mark.parametrize("first", [True, False])
def test_what_waits_comes_last(first: bool) -> None:
    branch = kernel("kernel", read("x"), write("there")), host("copy", read("there"), write("y"))
    slow = host("slow", read("x"), write("z"))
    assert order(*branch, slow) == order(slow, *branch) == ["kernel", "slow", "copy"]


def test_what_need_not_wait_any_more_keeps_its_place() -> None:
    """``first`` waits for the kernel, so that ``second``, which needs the same, delays nothing after it."""
    steps = (
        kernel("kernel", write("there")),
        host("first", read("there"), write("a")),
        host("second", read("there"), write("b")),
        host("third", read("a"), write("c")),
    )
    assert order(*steps) == ["kernel", "first", "second", "third"]


def test_waiting_for_what_a_device_needs_keeps_the_programs_order() -> None:
    steps = (
        kernel("kernel", write("a")),
        host("between", read("a"), write("b")),
        host("other", write("c")),
        kernel("next", read("b"), write("d")),
    )
    assert order(*steps) == ["kernel", "between", "next", "other"]
    assert order(steps[0], steps[2], steps[1], steps[3]) == ["kernel", "other", "between", "next"]


def test_a_device_that_waits_for_another_keeps_the_programs_order() -> None:
    """The host waits for the first device before it submits to the second."""
    steps = (
        kernel("first", write("a")),
        kernel("second", read("a"), write("b"), device=OTHER),
        host("other", write("c")),
        kernel("third", write("d"), device=OTHER),
    )
    assert order(*steps) == ["first", "second", "third", "other"]
    assert order(steps[0], steps[2], *steps[1::2]) == ["first", "other", "second", "third"]


def test_what_touches_anything_stays_between() -> None:
    slow, anything = host("slow", write("z")), Item[str]("if", None, None)
    assert order(slow, anything, kernel("kernel", write("d"))) == ["slow", "if", "kernel"]
    assert order(anything) == ["if"] and order() == []


def test_who_is_awaited() -> None:
    steps = (
        kernel("needed", write("a")),
        kernel("not", write("b")),
        kernel("elsewhere", read("b"), write("c"), device=OTHER),
        host("host", read("a"), write("d")),
    )
    found = {item.subject: item.is_awaited for item in by_dependences(steps)}
    assert found == {"needed": True, "not": True, "elsewhere": False, "host": False}
    assert [item.is_awaited for item in by_dependences(steps[:2])] == [False, False]


def test_any_order_keeps_dependences_and_queues() -> None:
    random = Random(2)
    for _ in range(200):
        items = [_item(random, number) for number in range(20)]
        found = [item.subject for item in by_dependences(items)]
        assert sorted(found) == list(range(20))
        place = {subject: location for location, subject in enumerate(found)}
        for later in range(20):
            for earlier in range(later):
                if _must_follow(items[later], items[earlier]):
                    assert place[earlier] < place[later]


def _item(random: Random, number: int) -> Item[int]:
    touched: Sequence[Touch] | None = [
        Touch(random.choice("mn"), start := random.randrange(30), start + random.randrange(1, 7), random.random() < 0.4)
        for _ in range(random.randrange(1, 4))
    ]
    device = random.choice([None, None, DEVICE, OTHER])
    return Item(number, device, None if device is None and random.random() < 0.05 else touched)


def _must_follow(later: Item[int], earlier: Item[int]) -> bool:
    if later.touched is None or earlier.touched is None:
        return True
    same_queue = later.device is not None and later.device is earlier.device
    return same_queue or any_conflict(later.touched, earlier.touched)
