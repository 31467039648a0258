"""``landbridge upgrade``: what it prints, one bad file among good ones, and what it refuses."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from landbridge.executable.instructions import HostCall
from landbridge.files import output_file
from tests.cli.command_line import invoke
from tests.vm import programs

STORED = Path(__file__).parents[1] / "executable" / "stored"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("8-known.lbx", "8-open.lbx", "10-loop.lbx"):
        shutil.copy(STORED / name, tmp_path)
    return tmp_path


def test_a_line_for_each_file(folder: Path) -> None:
    old, loop = folder / "8-known.lbx", folder / "10-loop.lbx"
    done = invoke(["upgrade", str(old), str(loop)])
    assert (done.exit_code, done.stderr) == (0, "")
    first, second = done.stdout.splitlines()
    size = old.stat().st_size
    assert first == f"{old}: format 8 to 9, 12,800 to {size:,} bytes"
    assert second.startswith(f"{loop}: format 10 to 13, ")
    again = invoke(["upgrade", str(old)])
    assert (again.exit_code, again.stdout) == (0, f"{old}: format 9, {size:,} bytes, left as it is\n")


def test_to_another_file(folder: Path) -> None:
    old, new = folder / "8-known.lbx", folder / "new.lbx"
    done = invoke(["upgrade", str(old), "-o", str(new)])
    assert (done.exit_code, done.stdout) == (
        0,
        f"{old}: format 8 to 9, 12,800 to {new.stat().st_size:,} bytes, in {new}\n",
    )
    assert old.read_bytes() == (STORED / old.name).read_bytes()


def test_two_files_have_no_place_in_one(folder: Path) -> None:
    files = [str(folder / name) for name in ("8-known.lbx", "8-open.lbx")]
    done = invoke(["upgrade", *files, "-o", str(folder / "new.lbx")])
    assert done.exit_code == 2 and "cannot hold 2 programs; upgrade them one by one" in done.stderr
    assert not (folder / "new.lbx").exists()
    for file in files:
        assert Path(file).read_bytes() == (STORED / Path(file).name).read_bytes()


def bad_files(folder: Path) -> dict[str, str]:
    """Files that cannot be upgraded, and what is said of each."""
    content = (STORED / "8-known.lbx").read_bytes()
    (folder / "cut.lbx").write_bytes(content[:9000])
    (folder / "old.lbx").write_bytes(content[:8] + (7).to_bytes(4, "little") + content[12:])
    (folder / "new.lbx").write_bytes(content[:8] + (99).to_bytes(4, "little") + content[12:])
    (folder / "model.onnx").write_bytes(b"\x08\x08" * 100)
    (folder / "folder").mkdir()
    return {
        "cut.lbx": "truncated: 9000 bytes, its header says 12800",
        "old.lbx": "format version 7, and this Landbridge reads 8 to 13; compile the model again",
        "new.lbx": "format version 99, and this Landbridge reads 8 to 13; install a newer Landbridge",
        "model.onnx": "not an .lbx file",
        "folder": "is a folder, and no .lbx",
        "none.lbx": "there is no file",
    }


def test_bad_files_are_reported_and_the_others_are_done(folder: Path) -> None:
    bad = bad_files(folder)
    names = ["8-known.lbx", *bad, "8-open.lbx"]
    done = invoke(["upgrade", *(str(folder / name) for name in names)])
    assert done.exit_code == 1 and done.exception is None
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == [
        str(folder / "8-known.lbx"),
        str(folder / "8-open.lbx"),
    ]
    reported = done.stderr.splitlines()
    assert len(reported) == len(bad)
    for line, (name, reason) in zip(reported, bad.items(), strict=True):
        assert line.startswith("error: ") and str(folder / name) in line and reason in line


def test_as_json(folder: Path) -> None:
    bad_files(folder)
    files = [str(folder / name) for name in ("8-open.lbx", "cut.lbx")]
    done = invoke(["upgrade", *files, "--json"])
    found: Any = json.loads(done.stdout)
    assert done.exit_code == found["error"]["exit_code"] == 1
    good, cut = found["files"]
    assert good == {
        "file": files[0],
        "output": files[0],
        "from_format": 8,
        "to_format": 13,
        "from_bytes": (STORED / "8-open.lbx").stat().st_size,
        "to_bytes": Path(files[0]).stat().st_size,
        "written": True,
        "missing_host_operators": [],
    }
    assert cut["file"] == files[1] and cut["error"]["kind"] == "ExecutableError" == found["error"]["kind"]
    assert "error" not in json.loads(invoke(["upgrade", files[0], "--json"]).stdout)


def test_a_folder_that_takes_no_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that are current need no folder to write into."""
    current = folder / "current.lbx"
    assert invoke(["upgrade", str(folder / "8-open.lbx"), "-o", str(current)]).exit_code == 0
    real = os.open

    def read_only(path: str, flags: int, *args: int, **options: int) -> int:
        """As the system does for everybody but root, where a folder's mode forbids it."""
        if flags & (os.O_CREAT | os.O_RDWR | os.O_WRONLY):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(path, flags, *args, **options)

    if os.geteuid() == 0:
        monkeypatch.setattr(output_file.os, "open", read_only)
    else:
        folder.chmod(0o500)
    try:
        done = invoke(["upgrade", str(folder / "8-known.lbx"), str(current)])
    finally:
        folder.chmod(0o700)
    assert done.exit_code == 1
    assert f"{folder / '8-known.lbx'} cannot be written: the folder {folder} takes no file" in done.stderr
    assert done.stdout.startswith(f"{current}: format 13, ") and done.stdout.endswith("left as it is\n")
    assert (folder / "8-known.lbx").read_bytes() == (STORED / "8-known.lbx").read_bytes()


def test_host_operators_that_are_no_more_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.lbx"
    calls = (
        HostCall("host:ai.onnx.RoiAlign@16", (0,), {"module": ""}),
        HostCall("landbridge.gone", (0,), {}),
        HostCall("host:ai.onnx.NonZero@1", (0,), {"module": ""}),
        HostCall("landbridge.check_indices", (0,), {}),
        HostCall("host:own.Rank@1", (0,), {"module": "own.operators"}),
    )
    programs.executable({"x": (8,)}, {"y": (8,)}, calls).save(path)
    done = invoke(["upgrade", str(path)])
    assert done.exit_code == 0 and done.stdout.endswith("left as it is\n")
    (warning,) = done.stderr.splitlines()
    assert warning.startswith(f"warning: {path} calls ai.onnx.RoiAlign@16, landbridge.gone of the host, which")
    assert "compile its model again" in warning and "NonZero" not in warning and "Rank" not in warning
    found = json.loads(invoke(["upgrade", str(path), "--json"]).stdout)
    assert found["files"][0]["missing_host_operators"] == ["ai.onnx.RoiAlign@16", "landbridge.gone"]
