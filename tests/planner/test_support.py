"""Plans for open sizes: valid for every size, and no higher than planned for the likely ones."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from landbridge import planner
from landbridge.planner.buffers import Buffer, Plan
from landbridge.sizes.size import Extent, Size, dimension, expected_size

W = dimension("W", 8, 4096, 8, 320)
N = dimension("N", 1, 64, 1, 2)
AXES = {"W": st.integers(1, 512).map(lambda units: 8 * units), "N": st.integers(1, 64)}

#: Bytes that tensors have: of one dimension, of both, of neither.
BYTES: list[Extent] = [64, 4096, 4 * W, 96 * W, W * N, 24 * W + 64, W * W // 8, (W + 9) // 16 * 64, 64 * N]

buffers = st.lists(
    st.tuples(st.sampled_from(BYTES), st.integers(0, 20), st.integers(1, 6), st.sampled_from([1, 64, 256])),
    min_size=1,
    max_size=14,
)


def at(extent: Extent, values: dict[str, int]) -> int:
    return extent.at(values) if isinstance(extent, Size) else extent


@given(buffers, st.lists(st.fixed_dictionaries(AXES), min_size=1, max_size=3))
def test_valid_for_every_size(drawn: list[tuple[Extent, int, int, int]], points: list[dict[str, int]]) -> None:
    sizes = [size for size, *_ in drawn]
    made = [Buffer(str(i), expected_size(s), a, t, t + life) for i, (s, t, life, a) in enumerate(drawn)]
    planned = planner.plan(made)
    offsets = [planned.offsets[b.id] for b in made]
    places, end = planner.supported(made, offsets, sizes)
    usual = {"W": 320, "N": 2}
    assert at(end, usual) <= planned.peak
    for values in (usual, *points):
        now = [replace(b, size=at(size, values)) for b, size in zip(made, sizes, strict=True)]
        found = {b.id: at(place, values) for b, place in zip(now, places, strict=True)}
        # The checker shares no code with what makes plans; it compares every pair.
        planner.check(now, Plan(found, at(end, values), 0, proved_optimal=False, seconds=0.0))
