"""The conformance suite as a plugin author uses it, on the devices of this package."""

from __future__ import annotations

import pytest

from landbridge.device import registry
from landbridge.testing.conformance import DeviceConformance
from landbridge.testing.conformance.run import sentences
from landbridge.testing.sim_lazy import SimLazyDeviceAPI
from tests.testing.whole_suite import run_conformance


class TestCpu(DeviceConformance):
    device_name = "cpu"


class TestSimLazy(DeviceConformance):
    device_name = "sim:lazy"


class TestSimScratch(DeviceConformance):
    device_name = "sim:scratch"


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(1, 9))
def test_sim_lazy_conforms_whatever_the_order(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.device("sim:lazy")  # so that its type is known, whatever ran before
    api = SimLazyDeviceAPI(seed)
    monkeypatch.setitem(registry._plugins._known, api.name, api)
    monkeypatch.setattr(registry, "_devices", {})
    results = run_conformance("sim:lazy:1")
    assert [r for r in results if r.outcome == "fail"] == []
    assert not api.violations
    api.check_freed_blocks()


def test_every_test_states_its_sentence() -> None:
    assert len(sentences()) > 40
    assert [name for name, sentence in sentences().items() if len(sentence) < 10] == []


def test_the_parts_of_the_suite_do_not_hide_each_other() -> None:
    """They are one class: two that define one name would be one."""
    names = [name for part in DeviceConformance.__bases__ for name in vars(part) if not name.startswith("__")]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []
