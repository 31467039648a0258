"""Shares of limits: by hand."""

from __future__ import annotations

import pytest

from landbridge.roofline import Level, MachineLimits, TimedKernel, roof_share

LIMITS = MachineLimits(1, 100e9, (Level("L1", 1000, 200e9), Level("L2", 10_000, 50e9), Level("memory", 0, 10e9)))


def kernel(seconds: float, flops: int, nbytes: int) -> TimedKernel:
    return TimedKernel("k", "k", "cpu", seconds, flops, nbytes)


@pytest.mark.parametrize(
    ("nbytes", "level"),
    [(0, "L1"), (1000, "L1"), (1001, "L2"), (10_000, "L2"), (10_001, "memory"), (1 << 40, "memory")],
)
def test_bytes_lie_in_the_nearest_level_with_room(nbytes: int, level: str) -> None:
    assert LIMITS.level_of(nbytes).name == level


def test_shares_are_of_what_bounds_the_kernel() -> None:
    computing = kernel(2e-6, 100_000, 1000)  # 1 us at the peak
    assert computing.of_peak(LIMITS) == pytest.approx(0.5)
    assert computing.of_roof(LIMITS) == pytest.approx(0.5)
    assert computing.of_bandwidth(LIMITS) == pytest.approx(1000 / 2e-6 / 200e9)
    moving = kernel(4e-6, 100, 20_000)  # 2 us from memory
    assert moving.of_bandwidth(LIMITS) == pytest.approx(0.5)
    assert moving.of_roof(LIMITS) == pytest.approx(0.5)
    assert roof_share([computing, moving], LIMITS) == pytest.approx(3 / 6)
    assert (moving.intensity, kernel(1.0, 3, 0).intensity) == (0.005, 0)


def test_of_nothing_there_is_no_share() -> None:
    assert roof_share([], LIMITS) == 0
    assert kernel(0.0, 1, 1).of_roof(LIMITS) == 0
    assert kernel(0.0, 1, 1).of_peak(LIMITS) == 0
