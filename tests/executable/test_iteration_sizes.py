"""IterationSizes: the sizes of trips to come, as far as they are legal."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from landbridge.executable.iteration_sizes import IterationSizes
from landbridge.executable.parts import SizeGuard, TensorSpec
from landbridge.sizes.size import Extent, dimension

N, M, UP_TO = dimension("n"), dimension("m"), dimension("n", 1, 70)


def sizes(taken: Sequence[Extent], given: Sequence[Extent], *guards: SizeGuard) -> IterationSizes:
    specs = [[TensorSpec("x", (extent, 4), "float32")] for extent in (*taken, *given)]
    flat = [spec for each in specs for spec in each]
    return IterationSizes(flat[: len(taken)], flat[len(taken) :], guards, ["m"])


def lengths(of: IterationSizes, first: Sequence[int], most: int, around: int = 2) -> list[list[int]] | None:
    ahead = of.ahead(tuple((extent, 4) for extent in first), {"m": around}, most)
    if ahead is None:
        return None
    assert len(ahead.shapes) == ahead.count + 1
    return ahead.shapes[:, ::2].tolist()


@pytest.mark.parametrize(
    ("given", "first", "expected"),
    [
        (N + 1, 5, [5, 6, 7, 8]),
        (N + M, 5, [5, 7, 9, 11]),  # not by a number, but it can be computed
        (N, 5, [5, 5, 5, 5]),
        (2 * N, 40, [40, 80, 160]),  # no further ahead: memory is taken for all
        (N - 2, 5, [5, 3, 1, -1]),  # 1 is taken, what it gives is not
        (N // 2, 12, [12, 6, 3, 1]),
        (N + 1, 0, None),
    ],
)
def test_what_a_trip_gives_the_next_one_takes(given: Extent, first: int, expected: list[int] | None) -> None:
    found = lengths(sizes([N], [given]), [first], 3)
    assert found == (None if expected is None else [[each] for each in expected])


def test_trips_end_at_the_largest_size() -> None:
    assert lengths(sizes([UP_TO], [UP_TO + 1]), [68], 64) == [[68], [69], [70], [71]]
    assert lengths(sizes([UP_TO], [UP_TO + 1]), [71], 64) is None


def test_dimensions_that_several_values_have_stay_equal() -> None:
    both = sizes([N, N], [N + 1, N + 1])
    assert lengths(both, [3, 3], 2) == [[3, 3], [4, 4], [5, 5]]
    assert lengths(both, [3, 4], 2) is None
    assert lengths(sizes([N, N], [N + 1, N + M]), [3, 3], 3) == [[3, 3], [4, 5]]  # the second trip is not legal


def test_guards_hold_in_each_trip() -> None:
    guarded = sizes([N], [N + 1], SizeGuard("n // 8", N // 8, 0))
    assert lengths(guarded, [6], 5) == [[6], [7], [8]]
    assert lengths(guarded, [9], 5) is None


def test_other_ranks_and_dimensions_that_nobody_says_are_not_known() -> None:
    of = sizes([N], [N + 1])
    assert of.ahead(((3,),), {"m": 2}, 4) is None
    assert of.ahead(((3, 5),), {"m": 2}, 4) is None
    assert sizes([N], [N + M]).ahead(((3, 4),), {}, 4) is None
