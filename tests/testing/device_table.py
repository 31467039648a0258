"""The table of docs/supported-systems.md: what the suite found on each device. As a program, it writes it anew.

It is made from reports as ``landbridge conformance NAME --report FILE.json`` writes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.cli.command_line import invoke

DOCUMENT = Path(__file__).parents[2] / "docs" / "supported-systems.md"
DEVICES = ("cpu", "opencl", "vulkan", "wasm", "sim:lazy", "sim:board", "sim:scratch")
BEGIN, END = "<!-- device table: begin -->\n", "<!-- device table: end -->\n"
_OF_DRIVERS = ("opencl", "vulkan")
_HEAD = "| device | driver | kept | broken | do not apply | scopes | abilities |\n" + "| --- " * 7 + "|\n"


def report(device: str) -> dict[str, Any]:
    """What ``landbridge conformance`` reports of ``device``; raises FileNotFoundError where there is no such device."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "report.json")
        invoke(["conformance", device, "--report", str(file)])
        return dict(json.loads(file.read_text(encoding="utf-8")))


def driver(device: str, facts: Mapping[str, Any]) -> str:
    """The version of the driver that ``facts`` are of; "none" where the device is code of this package alone."""
    return str(facts["attributes"]["driver_version"]) if device in _OF_DRIVERS else "none"


def row(device: str, found: Mapping[str, Any]) -> list[str]:
    """The cells of ``device``, of which the last two are facts and need no run."""
    counts = [str(found[outcome]) for outcome in ("pass", "fail", "skip")]
    return [f"`{device}`", driver(device, found), *counts, *facts_cells(found)]


def facts_cells(facts: Mapping[str, Any]) -> list[str]:
    """Scopes and abilities."""
    return [", ".join(f"`{scope}`" for scope in facts["scopes"]), ", ".join(facts["abilities"])]


def declared() -> dict[str, list[str]]:
    """The rows that the document has, by device."""
    lines = DOCUMENT.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0].splitlines()[2:]
    rows = [line.strip("| ").split(" | ") for line in lines]
    return {cells[0].strip("`"): cells for cells in rows}


def _write() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    table = _HEAD + "".join(f"| {' | '.join(row(device, report(device)))} |\n" for device in DEVICES)
    DOCUMENT.write_text(f"{before}{BEGIN}{table}{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    _write()
