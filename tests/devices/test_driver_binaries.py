"""Files of drivers' binaries: found again for the same driver, options and code, and never when damaged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from landbridge.devices import driver_binaries
from landbridge.devices.driver_binaries import BinaryFile, DriverBinary, binary_file, processor

DRIVER = {"device": ["card", 7], "driver": "1.2"}
FOUND = DriverBinary({"parameters": {"f": ["int", None]}}, b"\0binary\xff" * 20)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of files of this test."""
    monkeypatch.setenv("LANDBRIDGE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def file(driver: dict[str, Any] = DRIVER, code: bytes = b"code", options: str = "-O") -> BinaryFile:
    found = binary_file(driver, code, options)
    assert found is not None
    return found


def test_what_was_written_is_read(folder: Path) -> None:
    assert file().read() is None
    file().write(FOUND)
    assert file().read() == FOUND and [each.name for each in folder.iterdir()] == [file().name]
    file().remove()
    assert file().read() is None and not list(folder.iterdir())


@pytest.mark.parametrize(
    "other",
    [
        {"driver": {**DRIVER, "driver": "1.3"}},
        {"driver": {**DRIVER, "device": ["card", 8]}},
        {"code": b"other"},
        {"code": b""},
        {"options": ""},
    ],
    ids=str,
)
def test_another_driver_code_or_option_has_another_file(folder: Path, other: dict[str, Any]) -> None:
    file().write(FOUND)
    assert file(**other).read() is None
    (folder / file().name).rename(folder / file(**other).name)
    assert file(**other).read() is None, "a file under the name of another was taken"
    assert not list(folder.iterdir())


def test_a_damaged_file_is_none_and_goes(folder: Path) -> None:
    file().write(FOUND)
    content = (folder / file().name).read_bytes()
    flipped = [content[:at] + bytes([content[at] ^ 16]) + content[at + 1 :] for at in range(len(content))]
    cut = [content[:length] for length in range(len(content))]
    for damaged in (*flipped, *cut, content + b"\0"):
        (folder / file().name).write_bytes(damaged)
        assert file().read() is None and not list(folder.iterdir())
    (folder / file().name).write_bytes(content)
    assert file().read() == FOUND


def test_a_use_is_noted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for code in (b"first", b"second"):
        file(code=code).write(FOUND)
    size = (folder / file(code=b"first").name).stat().st_size
    assert file(code=b"first").read() == FOUND
    monkeypatch.setenv("LANDBRIDGE_CACHE_BYTES", str(size * 5 // 2))
    file(code=b"third").write(FOUND)
    assert [file(code=code).read() is not None for code in (b"first", b"second", b"third")] == [True, False, True]


def test_nothing_is_cached_where_it_is_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDBRIDGE_CACHE", "0")
    assert binary_file(DRIVER, b"code") is None


def test_a_folder_that_cannot_be_used_fails_no_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    folder.chmod(0o777)
    assert binary_file(DRIVER, b"code") is None, "others may put code there"
    folder.rmdir()
    folder.write_text("a file")
    assert binary_file(DRIVER, b"code") is None
    monkeypatch.setenv("LANDBRIDGE_CACHE", "")
    monkeypatch.setattr("landbridge.files.cache_folder.user_cache", lambda: None)
    assert binary_file(DRIVER, b"code") is None


def test_a_full_disk_keeps_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("landbridge.files.cache_folder.open_output", full)
    file().write(FOUND)
    assert file().read() is None


def test_a_folder_that_went_keeps_nothing(folder: Path) -> None:
    found = file()
    folder.rmdir()
    found.write(FOUND)
    assert found.read() is None
    found.remove()


def test_processes_that_write_at_once(folder: Path) -> None:
    program = (
        "from tests.devices.test_driver_binaries import FOUND, file\n"
        "for _ in range(200):\n"
        "    file().write(FOUND)\n"
        "    assert file().read() == FOUND\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE) for _ in range(3)]
    assert [(child.communicate()[1], child.returncode) for child in running] == [(b"", 0)] * 3
    assert [each.name for each in folder.iterdir()] == [file().name]


def test_the_processor_is_told_by_its_features(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = []
    for features in ("sse avx", "sse avx avx512f"):
        info = tmp_path / features
        info.write_text(f"processor\t: 0\ncpu MHz\t\t: {len(features)}\nflags\t\t: {features}\n\nprocessor\t: 1\n")
        monkeypatch.setattr(driver_binaries, "_CPUINFO", info)
        texts.append(processor())
    assert texts[0] != texts[1] and "MHz" not in texts[0] and "avx512f" in texts[1]
    monkeypatch.setattr(driver_binaries, "_CPUINFO", tmp_path / "none")
    assert processor()
