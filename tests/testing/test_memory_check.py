"""What is said of a device's memory: on devices that keep their word, and that do not."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from landbridge.device import registry
from landbridge.device.api import Space
from landbridge.devices.cma import CmaDeviceAPI
from landbridge.devices.cma.from_callable import CallableSource
from landbridge.testing import memory_check
from tests.cli.command_line import invoke
from tests.devices.cma.u_dma_buf import Node


def file_of(nbytes: int) -> int:
    fd = os.memfd_create("board", os.MFD_CLOEXEC)
    os.ftruncate(fd, nbytes)
    return fd


class Board(CmaDeviceAPI):
    name: ClassVar[str] = "board"

    def __init__(self) -> None:
        super().__init__([CallableSource(file_of, "heap"), CallableSource(lambda nbytes: os.open("", 0), "empty")])


class GivesAnotherFile(Board):
    def export_fd(self, space: Space) -> int:
        return file_of(space.handle.nbytes)

    def import_source(self, space: Space) -> None:
        return None


@pytest.fixture
def board() -> Iterator[None]:
    yield
    registry.unregister("board")


def findings(code: int) -> dict[tuple[str, str], tuple[str, bool]]:
    done = invoke(["devices", "--check", "board", "--json"])
    assert done.exit_code == code, done.output
    return {(f["scope"], f["subject"]): (f["outcome"], f["failed"]) for f in json.loads(done.stdout)["findings"]}


@pytest.mark.usefixtures("board")
def test_what_holds() -> None:
    registry.register(Board())
    found = findings(3)  # as one of its sources has nothing
    assert found["global.heap", "mapped twice"] == ("the same bytes", False)
    assert found["global.heap", "device's address"] == ("unknown", False)
    assert "empty has no 1048576 bytes" in found["global.empty", "allocated"][0]
    assert [key for key, (_, failed) in found.items() if failed] == [("global.empty", "allocated")]


@pytest.mark.usefixtures("board")
def test_a_descriptor_of_something_else() -> None:
    registry.register(GivesAnotherFile())
    assert findings(3)["global.heap", "mapped twice"] == ("other bytes", True)


@pytest.mark.usefixtures("board")
@pytest.mark.parametrize("proof", [None, False])
def test_a_carve_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proof: bool | None) -> None:
    monkeypatch.setattr(memory_check, "is_contiguous", lambda address, nbytes: proof)
    node = Node(tmp_path)

    class Carved(CmaDeviceAPI):
        name: ClassVar[str] = "board"

        def __init__(self) -> None:
            super().__init__([node])

    registry.register(Carved())
    found = findings(0 if proof is None else 3)
    assert found["global.udmabuf0", "contiguous"][1] == (proof is False)
    assert found["global.udmabuf0", "device's address"] == (f"{node.address:#x}, in 1 pieces", False)
    assert found["global.udmabuf0", "exported"] == ("no file of its own", False)


def test_lines_fit_a_terminal() -> None:
    done = invoke(["devices", "-v"], env={"COLUMNS": "80", "NO_COLOR": "1"})
    assert "  dev_mem: " in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
