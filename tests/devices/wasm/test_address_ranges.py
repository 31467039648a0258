"""Ranges of addresses: none overlap, and all holes join again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from landbridge.devices.wasm.address_ranges import AddressRanges

_STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 300), st.sampled_from([1, 8, 64])), max_size=60)


@given(_STEPS)
def test_ranges_are_apart_and_come_back(steps: list[tuple[bool, int, int]]) -> None:
    ranges, live = AddressRanges(64, 4096), list[tuple[int, int]]()
    for takes, size, alignment in steps:
        if takes or not live:
            at = ranges.take(size, alignment)
            if at is None:
                holes = sum(max(size, 1) for _, size in live)
                assert holes + max(size, 1) > (4096 - 64) // 4  # it is not refused while nearly all is free
                continue
            assert at % alignment == 0 and at >= 64 and at + max(size, 1) <= 4096
            assert all(at + max(size, 1) <= begin or begin + max(other, 1) <= at for begin, other in live)
            live.append((at, size))
        else:
            ranges.give_back(live.pop(size % len(live))[0])
        assert ranges.taken_bytes == sum(max(size, 1) for _, size in live)
    for begin, _ in live:
        ranges.give_back(begin)
    assert ranges.taken_bytes == 0 and ranges.take(4096 - 64, 1) == 64
