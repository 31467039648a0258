"""``--on ssh://board`` where the board is full or the connection is lost: an error says so, and nothing stays there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import landbridge as lb
from tests.boards.test_on_board import LIMIT, ON, Desk, MakeDesk, make_desk, model, same, x

__all__ = ["MakeDesk", "make_desk", "model", "same", "x"]

#: For a program that the shell of a session runs: ends the session's sshd, as a network that goes away does.
CUT = "kill -9 $(cut -d ' ' -f 4 /proc/$PPID/stat); sleep 1"
FULL = 'echo "$0: write error: No space left on device" >&2; exit 1'


def replace_there(desk: Desk, name: str, *lines: str) -> None:
    """Let ``name`` be a script of ``lines`` on the board."""
    file = desk.home / "bin" / name
    file.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    file.chmod(0o755)


@pytest.fixture
def compiled(model: Path) -> Iterator[Path]:
    file = model.with_suffix(".lbx")
    lb.compile(model).save(file)
    return file


@pytest.mark.parametrize("way", ["full", "cut"])
@pytest.mark.parametrize("subject", ["program", "inputs"])
def test_what_does_not_arrive_is_reported_and_not_retained(
    subject: str, way: str, same: Desk, compiled: Path, x: Path
) -> None:
    # The programs that write there, with a part of the bytes.
    ending = FULL if way == "full" else CUT
    if subject == "program":
        replace_there(same, "cat", "head -c 1000", ending)
    else:
        replace_there(same, "tar", '[ "$1" = -cf ] && exec /bin/tar "$@"', "head -c 1000 >$4/0.npy", ending)
    code, _, stderr = same("run", str(compiled), "-i", f"x={x}", "--repeat", "1", "--on", ON)
    assert code == 1
    if way == "full":
        assert f"{ON} does not take " in stderr and "No space left on device" in stderr
        assert (" bytes into " if subject == "program" else "the inputs into ") in stderr
    else:
        assert f"the connection to {ON} was lost: " in stderr and "give the command again" in stderr
    end = time.monotonic() + 20
    retained = 0 if subject == "program" else 1
    while len(same.programs) > retained:  # a session that was cut ends by itself
        assert time.monotonic() < end, same.programs
        time.sleep(0.1)
    for name in ("cat", "tar"):
        (same.home / "bin" / name).unlink(missing_ok=True)
    assert same.json("run", str(compiled), "-i", f"x={x}", "--repeat", "1", "--on", ON)["outputs"]


@pytest.mark.parametrize("left", ["half", "other bytes", "nothing"])
def test_a_copy_that_is_no_longer_what_its_name_says_is_made_anew(left: str, same: Desk, compiled: Path) -> None:
    line = ["run", str(compiled), "--repeat", "1", "--on", ON]
    same.json(*line)
    (name,) = same.programs
    copy = same.home / "cache/landbridge/boards" / name
    content = copy.read_bytes()
    damaged = {"half": content[: len(content) // 2], "other bytes": bytes(len(content)), "nothing": b""}[left]
    copy.write_bytes(damaged)
    assert same.json(*line)["outputs"]
    assert same.programs == [name] and copy.read_bytes() == content


def test_a_copy_that_another_desk_removed_concurrently(same: Desk, compiled: Path) -> None:
    line = ["run", str(compiled), "--repeat", "1", "--on", ON]
    same.json(*line)
    (name,) = same.programs
    copy = same.home / "cache/landbridge/boards" / name
    # The program that says what lies there: behind it comes the other desk.
    replace_there(same, "ls", f'[ "$1" = -t ] && exec /bin/ls "$@"; /bin/ls "$@"; rm -f {copy}')
    assert same.json(*line)["outputs"]
    assert same.programs == [name]


def test_a_connection_lost_while_it_runs(same: Desk, compiled: Path, x: Path) -> None:
    script = same.home / "bin/landbridge"
    text, noted = script.read_text(), same.home / "pid"
    cut = f'[ "$1" = run ] && {{ echo $$ >{noted}; {CUT}; exec sleep {LIMIT}; }}'
    script.write_text(text.replace("#!/bin/sh\n", f"#!/bin/sh\n{cut}\n"))
    code, _, stderr = same("run", str(compiled), "-i", f"x={x}", "--on", ON)
    assert code == 1 and f"the connection to {ON} was lost: " in stderr
    assert len(same.programs) == 1, "the folder of the run stayed"
    there, end = Path("/proc", noted.read_text().strip()), time.monotonic() + 20
    while there.exists() and "sleep" in (there / "cmdline").read_text():
        assert time.monotonic() < end, "it runs on"
        time.sleep(0.1)


def test_outputs_that_find_no_space(same: Desk, compiled: Path, x: Path, tmp_path: Path) -> None:
    replace_there(same, "tar", '[ "$1" = -cf ] || exec /bin/tar "$@"', FULL)
    line = ["run", str(compiled), "-i", f"x={x}", "--output-dir", str(tmp_path / "out"), "--on", ON]
    code, _, stderr = same(*line)
    assert code == 1 and f"the outputs cannot be fetched from {ON}" in stderr and "No space left" in stderr
    assert len(same.programs) == 1 and not np.any([file.is_file() for file in (tmp_path / "out").glob("*")])
