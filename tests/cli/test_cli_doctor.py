"""``landbridge doctor``: what is here, what is missing, and what does not work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from landbridge import package_version
from landbridge.cli import devices
from landbridge.cli.doctor import _cache
from landbridge.devices.driver_binaries import DriverBinary, binary_file
from landbridge.errors import ExecutableError
from landbridge.files.cache_folder import PROGRAM
from landbridge.process.executable_pages import CodePages
from tests.cli.command_line import invoke


def findings() -> dict[str, dict[str, str]]:
    done = invoke(["doctor", "--json"])
    assert done.exit_code in (0, 3), done.output
    return {each["subject"]: each for each in json.loads(done.stdout)["findings"]}


def test_what_is_here_is_found() -> None:
    found = findings()
    assert found["numpy"]["state"] == found["cpu:0"]["state"] == found["code that was compiled"]["state"] == "ok"
    assert found["compile cache"]["state"] == "missing"  # these tests keep nothing
    assert found["sim:board:0"]["found"].startswith("simulated device")


def test_a_cache_that_is_turned_off_says_by_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDBRIDGE_CACHE", "0")
    assert findings()["compile cache"]["advice"] == "LANDBRIDGE_CACHE=0 turns it off; unset it"


def test_the_cache_says_what_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDBRIDGE_CACHE", str(tmp_path))
    for code in (b"one", b"two"):
        file = binary_file({"driver": "1.2"}, code)
        assert file is not None
        file.write(DriverBinary({}, b"binary"))
    (tmp_path / f"a{PROGRAM}").write_bytes(b"")
    nbytes = sum(file.stat().st_size for file in tmp_path.iterdir())
    text = next(iter(_cache())).found
    assert text == f"{tmp_path}: 1 programs, 2 binaries of drivers, {nbytes:,} bytes"


def test_a_cache_without_a_folder_says_how_to_name_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("landbridge.files.cache_folder.open_folder", lambda: None)
    monkeypatch.delenv("LANDBRIDGE_CACHE", raising=False)
    assert findings()["compile cache"]["advice"] == "LANDBRIDGE_CACHE=FOLDER names one that takes files"


def test_the_page_is_for_people() -> None:
    done = invoke(["doctor"])
    assert done.exit_code == 0
    assert "compile cache" in done.stdout and done.stdout.splitlines()[-1].startswith("0 broken")


def test_a_package_that_is_missing_says_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = package_version.package_version
    monkeypatch.setattr(package_version, "package_version", lambda name: "0" if name == "llvmlite" else real(name))
    found = findings()["llvmlite"]
    assert found["state"] == "missing" and found["advice"] == "pip install 'landbridge[compile]'"


def test_what_does_not_work_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pages: CodePages, content: bytes) -> None:
        raise ExecutableError("no code")

    monkeypatch.setattr(CodePages, "fill", refuse)
    monkeypatch.setattr(devices, "described_devices", lambda: ([], {"board": "no firmware"}, []))
    done = invoke(["doctor"])
    assert done.exit_code == 3
    assert "no code" in done.stdout and "no firmware" in done.stdout and "2 broken" in done.stdout
