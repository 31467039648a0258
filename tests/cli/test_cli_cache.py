"""``landbridge cache`` and what commands do with results that are kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from landbridge.devices.driver_binaries import DriverBinary, binary_file
from tests.cli.command_line import invoke

MODEL = Path(__file__).with_name("add.mlir")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of entries of this test."""
    monkeypatch.setenv("LANDBRIDGE_CACHE", str(tmp_path / "kept"))
    return tmp_path / "kept"


def run(*args: str) -> str:
    done = invoke(args)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_entries_are_shown_and_removed(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert json.loads(run("cache", "--json"))["entries"] == []
    first, second = tmp_path / "a.lbx", tmp_path / "b.lbx"
    run("compile", str(MODEL), "-o", str(first))
    monkeypatch.setattr("landbridge.compiler.compilation.compile_model", lambda *_, **__: pytest.fail("it compiled"))
    run("compile", str(MODEL), "-o", str(second))
    assert first.read_bytes() == second.read_bytes()
    shown = json.loads(run("cache", "--json"))
    (entry,) = folder.glob("*.lbx")
    assert shown["folder"] == str(folder) and shown["limit_bytes"] == 2 << 30
    (described,) = (each for each in shown["entries"] if each["kind"] == "program")  # LLVM's facts may be there too
    assert (described["file"], described["bytes"]) == (entry.name, entry.stat().st_size)
    assert entry.name[:16] in run("cache") and shown["bytes"] == sum(each["bytes"] for each in shown["entries"])
    assert json.loads(run("cache", "--clear", "--json"))["entries"] == [] and not list(folder.iterdir())


def test_what_drivers_compiled_is_shown_and_removed(folder: Path) -> None:
    run("compile", str(MODEL), "-o", str(folder.parent / "a.lbx"))
    file = binary_file({"driver": "1.2"}, b"code")
    assert file is not None
    file.write(DriverBinary({}, b"binary"))
    kinds = {each["kind"] for each in json.loads(run("cache", "--json"))["entries"]}
    assert kinds - {"LLVM's facts of a processor"} == {"driver's binary", "program"}
    assert "driver's binary" in run("cache") and "entries" in invoke(["cache"]).output
    assert json.loads(run("cache", "--clear", "--json"))["entries"] == [] and not list(folder.iterdir())


def test_nothing_is_retained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDBRIDGE_CACHE", "0")
    assert json.loads(run("cache", "--json")) == {"folder": None, "entries": []}
    assert "LANDBRIDGE_CACHE=FOLDER" in invoke(["cache"]).output


def test_a_folder_that_cannot_be_used_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDBRIDGE_CACHE", str(tmp_path))
    tmp_path.chmod(0o777)
    done = invoke(["run", str(MODEL)])
    assert done.exit_code == 1 and "others may write to it" in done.output
