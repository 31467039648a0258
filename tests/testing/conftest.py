"""The seed of sim:lazy beside every failure, so that the order can be had again."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from landbridge.device import registry
from landbridge.testing.lazy_streams import SEED_VARIABLE
from landbridge.testing.sim_lazy import SimLazyDeviceAPI


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    api = registry._plugins._known.get("sim:lazy")
    if report.failed and isinstance(api, SimLazyDeviceAPI):
        report.sections.append(("sim:lazy", f"seed {api.seed}; set {SEED_VARIABLE}={api.seed} to repeat"))
    return report
