"""Measured limits: every level is there, and rates are of a machine of this century."""

from __future__ import annotations

import pytest

from landbridge.cli.machine_limits import measured_limits
from landbridge.targets import Target


@pytest.mark.sample(1)
@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=generic"])
def test_each_level_has_a_bandwidth(target: str) -> None:
    limits = measured_limits(Target(target), 1)
    assert limits.levels[0].name == "L1"
    assert limits.levels[-1].name == "memory"
    assert 1e8 < limits.flops < 1e13
    assert all(1e7 < level.bandwidth < 1e13 for level in limits.levels)
    capacities = [level.capacity for level in limits.levels[:-1]]
    assert capacities == sorted(set(capacities))
