"""Which work comes before which: every edge orders, and nothing else does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from landbridge.device.api import Space
from landbridge.device.registry import device as find_device
from landbridge.sanitizer.block import StampedAccess, TrackedBlock
from landbridge.sanitizer.clocks import Clocks
from landbridge.sanitizer.order import Order


def test_what_the_host_has_seen_done_comes_before_what_is_queued_next() -> None:
    clocks = Clocks()
    first = clocks.submit("a")
    assert not clocks.is_ordered(first, clocks.submit("b"))
    clocks.observe(first)
    assert clocks.is_ordered(first, clocks.submit("b"))
    second = clocks.submit("a")
    assert not clocks.is_ordered(second, clocks.submit("b"))  # another piece of the same queue


def test_what_is_done_has_all_before_it_done() -> None:
    clocks = Clocks()
    first = clocks.submit("a")
    clocks.after("b", clocks.now("a"))
    second = clocks.submit("b")
    assert not clocks.is_over(first)
    clocks.observe(second)
    assert clocks.is_over(first)


def test_a_point_carries_what_its_queue_waits_for() -> None:
    clocks = Clocks()
    first = clocks.submit("a")
    clocks.after("b", clocks.now("a"))
    clocks.after("c", clocks.now("b"))
    assert clocks.is_ordered(first, clocks.submit("c"))


def test_a_stamp_does_not_learn_of_what_comes_later() -> None:
    clocks = Clocks()
    early, late = clocks.submit("b"), clocks.submit("a")
    clocks.after("b", late)
    assert not clocks.is_ordered(late, early)
    assert clocks.is_ordered(late, clocks.submit("b"))


@pytest.mark.parametrize(
    ("one", "other", "conflict"),
    [
        ((0, 4, True), (4, 8, True), False),
        ((4, 8, True), (0, 4, True), False),
        ((8, 9, True), (0, 4, True), False),
        ((0, 5, True), (4, 8, True), True),
        ((0, 8, False), (0, 8, False), False),
        ((0, 8, None), (0, 8, None), False),
        ((0, 8, None), (0, 8, False), False),
        ((0, 8, True), (0, 8, False), True),
        ((0, 8, None), (0, 8, True), True),
    ],
)
def test_conflicts(one: tuple[int, int, bool | None], other: tuple[int, int, bool | None], conflict: bool) -> None:
    stamp = Clocks().submit("a")
    accesses = [StampedAccess(*each, stamp, "work") for each in (one, other)]
    assert accesses[0].conflicts(accesses[1]) is conflict
    assert accesses[1].conflicts(accesses[0]) is conflict


def _block() -> TrackedBlock:
    return TrackedBlock(Space(find_device("cpu"), "global", 0), 64, "here")


def test_work_is_unfinished_where_it_conflicts_with_the_host() -> None:
    order, block = Order(), _block()
    stamps = []
    for queue, start, stop, writes in (("a", 0, 16, False), ("b", 16, 32, True), ("c", 32, 48, None)):
        stamp, accesses = order.begin(queue, queue, [(block, start, stop, writes)])
        order.submit(stamp, accesses, None)
        stamps.append(stamp)

    def pending(start: int, stop: int, writes: bool) -> str:
        return "".join(access.subject for access in order.unfinished(block, start, stop, writes))

    assert (pending(0, 64, True), pending(0, 64, False)) == ("abc", "bc")
    assert [pending(at, at + 16, True) for at in (0, 16, 32, 48)] == ["a", "b", "c", ""]
    order.observe(stamps[1])
    assert pending(0, 64, True) == "ac"


def test_the_blocks_of_all_work_that_is_done_are_reported_with_every_work_that_may_have_written() -> None:
    order, block, read = Order(), _block(), _block()
    last = None
    for subject, writes in (("one", True), ("two", None)):
        last, accesses = order.begin("a", subject, [(block, 0, 8, writes), (read, 0, 8, False), (read, 4, 4, True)])
        order.submit(last, accesses, None)
    assert last is not None
    other, accesses = order.begin("b", "three", [(_block(), 0, 8, True)])
    order.submit(other, accesses, None)
    assert order.observe(last) == [(block, "one or two")]
    assert order.observe(last) == []
    assert block.accesses == read.accesses == []


def test_waiting_for_bytes_tells_what_wrote_them() -> None:
    order, block = Order(), _block()
    stamp, accesses = order.begin("a", "one", [(block, 8, 16, True)])
    order.submit(stamp, accesses, None)
    assert order.host_waited(block, 0, 8, True) == []
    assert order.host_waited(block, 0, 9, False) == [(block, "one")]


def test_what_is_dropped_with_an_instance_is_of_that_one_alone() -> None:
    order, block = Order(), _block()
    device = block.inner.device
    other = TrackedBlock(replace(block.inner, device=type(device)(device.api, 1)), 64, "there")
    stamp, accesses = order.begin("a", "one", [(block, 0, 8, True), (other, 0, 8, True)])
    order.submit(stamp, accesses, None)
    order.forget(device.api, 1)
    assert order.observe(stamp) == [(block, "one")]
