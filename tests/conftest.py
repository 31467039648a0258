"""Which tests run.

xdsl defines its operations while plugins are unknown: a test that swaps entry points first would spoil them.
"""

from __future__ import annotations

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

import landbridge.ir.dialect  # noqa: F401
from tests.selection import passed, sampling

# What is tested is the compiler, and not what it made before.
os.environ["LANDBRIDGE_CACHE"] = "0"

# The tests say nothing of time, and other work may have the processor: no deadline, no check of speed.
settings.register_profile("landbridge", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("landbridge")


def pytest_addoption(parser: pytest.Parser) -> None:
    sampling.add_options(parser)
    passed.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    file = config.getoption("--note-passed")
    if file is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(passed.Passed(file))


@pytest.fixture(autouse=True, scope="module")
def _old_objects_are_not_walked() -> None:
    """Nearly all that lives when a file of tests begins lives to the end: walking it was most of the time of each of
    the many collections."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    out = {*sampling.left_out(config, items), *passed.left_out(config, items)}
    if out:
        config.hook.pytest_deselected(items=[item for item in items if item in out])
        items[:] = [item for item in items if item not in out]
