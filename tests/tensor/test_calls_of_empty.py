"""What a new Tensor costs, in calls: of functions of Python and of its own, as cProfile counts them."""

from __future__ import annotations

import cProfile
import pstats

import landbridge as lb

_CALLS = 100
#: 48 by the last count, with the one that gives it back.
_MOST = 52


def test_an_empty_tensor_takes_few_calls() -> None:
    def once() -> None:
        lb.empty((4, 4), dtype="float32", device="cpu")

    for _ in range(3):
        once()
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(_CALLS):
        once()
    profile.disable()
    assert pstats.Stats(profile).total_calls <= _CALLS * _MOST  # type: ignore[attr-defined]
