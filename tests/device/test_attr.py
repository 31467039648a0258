"""Attributes of devices: the table of docs/device-contract.md names each, and who answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from landbridge.device.attr import DeviceAttr, is_legal
from tests.devices.present import first_instance

DOCUMENT = Path(__file__).parents[2] / "docs" / "device-contract.md"
BEGIN, END = "<!-- attributes: begin -->\n", "<!-- attributes: end -->\n"
DEVICES = ("cpu", "opencl", "vulkan")


def rows() -> dict[str, list[str]]:
    """The cells of each row, by the attribute."""
    lines = DOCUMENT.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0].splitlines()[2:]
    return {cells[0].strip("`"): cells for cells in (line.strip("| ").split(" | ") for line in lines)}


def test_the_table_has_every_attribute_once_and_in_order() -> None:
    assert list(rows()) == [attr.value for attr in DeviceAttr]


@pytest.mark.parametrize("name", DEVICES)
def test_a_device_answers_nothing_that_the_table_calls_none(name: str) -> None:
    device, column = first_instance(name), 2 + DEVICES.index(name)
    answered = {attr.value for attr in DeviceAttr if device.attr(attr) is not None}
    assert not answered & {value for value, cells in rows().items() if cells[column] == "–"}


@pytest.mark.parametrize(
    ("attr", "legal", "illegal"),
    [
        (DeviceAttr.API_VERSION, "3.0", 3),
        (DeviceAttr.MAX_BLOCK_DIMENSIONS, (64, 64, 4), [64, 64, 4]),
        (DeviceAttr.MAX_BLOCK_DIMENSIONS, (64, 1, 1), (64, 64)),
        (DeviceAttr.MAX_BLOCK_DIMENSIONS, (64, 1, 1), (64, 1.0, 1)),
        (DeviceAttr.SUBGROUP_SIZE, 32, "32"),
        (DeviceAttr.MEMORY_CLOCK_HZ, 1 << 30, -1),
        (DeviceAttr.FEATURES, ("fp16",), "fp16"),
    ],
)
def test_values_have_their_type(attr: DeviceAttr, legal: object, illegal: object) -> None:
    assert is_legal(attr, legal) and is_legal(attr, None)
    assert not is_legal(attr, illegal)
