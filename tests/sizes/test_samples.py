"""Sums at a few values of their dimensions: what they contradict is what a search for a bound never proves."""

from __future__ import annotations

import random
from itertools import product

import pytest

from landbridge.sizes import bounds
from landbridge.sizes.samples import samples
from landbridge.sizes.size import Extent, Size, always_at_least, at_least, dimension, largest, same, smallest

N, M, EMPTY = dimension("n", 1, 40), dimension("m", 4, None, 4), dimension("empty", 0, 9)


def _drawn(generator: random.Random, depth: int) -> Extent:
    """A sum of nested quotients, products and maxima of the dimensions."""
    if not depth:
        return generator.choice([N, M, EMPTY, generator.randint(-9, 9)])
    a, b = _drawn(generator, depth - 1), _drawn(generator, depth - 1)
    match generator.randrange(6):
        case 0:
            return a * b if depth == 1 else a * generator.randint(-3, 3)
        case 1:
            return a // generator.choice([2, 3, 7])
        case 2:
            return largest(a, b)
        case 3:
            return smallest(a, b)
        case 4:
            return a - b
        case _:
            return a + b


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(4))
def test_an_answer_is_that_of_the_bounds_alone(seed: int) -> None:
    generator = random.Random(seed)
    answers = set()
    for _ in range(150):
        a, b = _drawn(generator, 3), _drawn(generator, 3)
        difference = a - b
        if isinstance(difference, int):
            continue
        low, high = bounds.lower_bound(difference.terms), bounds.upper_bound(difference.terms)
        never_below, always_below = low is not None and low >= 0, high is not None and high < 0
        differ = (low is not None and low > 0) or always_below
        lows = [bounds.lower_bound(difference.terms, thorough=thorough) for thorough in (False, True)]
        assert always_at_least(a, b) is any(each is not None and each >= 0 for each in lows)
        assert at_least(a, b) is (True if never_below else False if always_below else None)
        assert same(a, b) is (False if differ else True if low == high == 0 else None)
        answers.add(at_least(a, b))
    assert answers == {True, False, None}


def test_each_is_a_value_that_the_sum_has_for_some_dimensions() -> None:
    size = largest(N * 3 // 7, EMPTY) - N
    assert isinstance(size, Size)
    values = {size.at({"n": n, "empty": e}) for n, e in product(range(1, 41), range(10))}
    assert set(samples(size.terms)) <= values
    assert len(set(samples(size.terms))) > 1


def test_what_an_example_contradicts_is_not_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "lower_bound", lambda _: pytest.fail("a bound was looked for"))
    monkeypatch.setattr(bounds, "upper_bound", lambda _: pytest.fail("a bound was looked for"))
    assert not always_at_least(N // 3, M // 5)
    assert at_least(N // 3, M // 5) is None
    assert same(N // 3, M // 5) is None
