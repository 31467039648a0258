"""Which tests run.

xdsl defines its operations while plugins are unknown: a test that swaps entry points first would spoil them.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Generator
from typing import Any

import pytest

import landbridge.ir.dialect  # noqa: F401
from tests.selection import passed, properties, sampling

# What is tested is the compiler, and not what it made before.
os.environ["LANDBRIDGE_CACHE"] = "0"


def pytest_addoption(parser: pytest.Parser) -> None:
    sampling.add_options(parser)
    passed.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    properties.choose_profile(config)
    file = config.getoption("--note-passed")
    if file is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(passed.Passed(file))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without walks over what is collected, of which nothing becomes garbage: a fifth of its time, for each
    worker."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.fixture(autouse=True, scope="module")
def _old_objects_are_not_walked() -> None:
    """Nearly all that lives when a file of tests begins lives to the end: walking it was most of the time of each of
    the many collections."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _each_pass_is_verified() -> Generator[None, object, object]:
    """Compiles of tests verify after every pass, as no other compiles do."""
    from landbridge.passes.registry import run_pipeline

    def each(*given: Any, every: bool = True) -> Any:
        return run_pipeline(*given[:5])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("landbridge.compiler.compilation.run_pipeline", each)
        yield


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    repeated = {item for item in passed.left_out(config, items) if not properties.drawn_again(config, item)}
    out = {*sampling.left_out(config, items), *repeated}
    if out:
        config.hook.pytest_deselected(items=[item for item in items if item in out])
        items[:] = [item for item in items if item not in out]
