"""The table of devices in docs/supported-systems.md is what the suite finds, as far as this machine has them."""

from __future__ import annotations

import pytest

from landbridge.errors import DeviceError
from landbridge.testing.conformance.device_facts import device_facts
from landbridge.testing.conformance.run import sentences
from tests.testing.device_table import DEVICES, declared, driver, facts_cells, report, row

CURRENT = "docs/supported-systems.md: run python -m tests.testing.device_table"


@pytest.mark.parametrize("device", DEVICES)
def test_each_row_counts_every_sentence_and_states_the_facts(device: str) -> None:
    cells = declared()[device]
    assert sum(map(int, cells[2:5])) == len(sentences()), CURRENT
    facts = _facts(device)
    assert cells[5:] == facts_cells(facts), CURRENT


@pytest.mark.full
@pytest.mark.parametrize("device", DEVICES)
def test_each_row_is_what_the_suite_finds(device: str) -> None:
    _facts(device)
    assert declared()[device] == row(device, report(device)), CURRENT


def _facts(device: str) -> dict[str, object]:
    """Of ``device``, where this machine has it with the driver that the table states."""
    try:
        facts = device_facts(device)
    except DeviceError as error:
        pytest.skip(f"no {device} here: {error}")
    if driver(device, facts) != declared()[device][1]:
        pytest.skip(f"{device} has another driver here: {driver(device, facts)}")
    return facts
