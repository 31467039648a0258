"""The suite for ``pytest --pyargs landbridge.testing --device NAME``: each test in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from landbridge.testing.conformance.isolation import SECONDS, IsolatedConformance
from landbridge.testing.conformance.run import sentences


@pytest.fixture(scope="module")
def conformance(request: pytest.FixtureRequest) -> Iterator[IsolatedConformance]:
    """Yields the server of the device that ``--device`` names."""
    name = request.config.getoption("--device", None)
    if name is None:
        pytest.skip("which device? pytest --pyargs landbridge.testing --device NAME")
    seconds = request.config.getoption("--device-timeout", None)
    with IsolatedConformance(name, seconds or SECONDS) as server:
        yield server


@pytest.mark.parametrize("name", sentences())
def test_sentence(name: str, conformance: IsolatedConformance) -> None:
    """One sentence of the contract."""
    (result,) = conformance.run([name])
    if result.outcome == "skip":
        pytest.skip(result.detail)
    if result.outcome == "fail":
        pytest.fail(f"{result.detail}\nbroken: {result.sentence}", pytrace=False)
