"""Commands that need no compiler: help, targets; usage errors, error messages and exit codes."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import landbridge as lb
from landbridge.cli import main, output
from landbridge.cli.app import COMMANDS
from landbridge.reporting.stages import begin_stage, listening
from landbridge.targets import Target, tags
from tests.cli.command_line import invoke

TINY = Path(__file__).parents[1] / "planner" / "tiny.csv"


def test_help_lists_commands_and_exit_codes_without_importing_the_compiler() -> None:
    program = (
        "import sys; from landbridge.cli import main; sys.argv = ['landbridge', '--help']\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "for heavy in ('numpy', 'onnx', 'xdsl', 'llvmlite'): assert heavy not in sys.modules, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    for word in ("run", "compile", "devices", "targets", "opt", "plan", "trace", "bench", "compare", "Exit codes"):
        assert word in done.stdout


def test_targets_lists_kinds_and_tags() -> None:
    done = invoke(["targets"])
    assert done.exit_code == 0
    assert "llvm" in done.stdout
    assert "raspberry-pi-5" in done.stdout
    listed = json.loads(invoke(["targets", "--json"]).stdout)
    kinds = {kind["name"]: kind for kind in listed["kinds"]}
    assert "mcpu" in {option["name"] for option in kinds["llvm"]["options"]}
    assert listed["broken"] == {}


def test_targets_resolves_one() -> None:
    shown = json.loads(invoke(["targets", "llvm -num-cores=3", "--json"]).stdout)
    assert shown["num-cores"] == 3
    assert Target(shown["text"]) == Target("llvm -num-cores=3")
    assert "num-cores" in invoke(["targets", "llvm -num-cores=3"]).stdout


def test_an_error_is_one_message_on_standard_error() -> None:
    done = invoke(["targets", "lvm"])
    assert done.exit_code == 1
    assert done.stdout == ""
    assert "did you mean 'llvm'" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_color_is_honoured() -> None:
    program = "import sys; from landbridge.cli import main; sys.argv = ['landbridge', 'targets', 'lvm']; main()"
    forced = {**os.environ, "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    forced.pop("NO_COLOR", None)
    command = [sys.executable, "-c", program]
    colourful = subprocess.run(command, capture_output=True, text=True, check=False, env=forced)
    plain = subprocess.run(command, capture_output=True, text=True, check=False, env={**forced, "NO_COLOR": "1"})
    assert colourful.returncode == plain.returncode == 1
    assert "\x1b[1;31m" in colourful.stderr
    assert "31m" not in plain.stderr


def test_long_cells_of_many_columns_are_lines_of_their_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = ("kernel", "us", "% bandwidth", "% peak", "% roof", "share", "tasks", "schedule", "weighed")
    name, schedule = "+".join(f"p2o.Conv.{number}" for number in range(9)), "12x1 block of 8 lanes; " * 5
    row = (name, "54.2", "10 L2", "11", "12", "6.8 %", "24", schedule, "[14x1]: 100 cycles, 12x1: 101 cycles")
    monkeypatch.setenv("COLUMNS", "80")
    output.table("kernels", columns, [row, ("short", *row[1:7], "", "")])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[:3] == ["kernels", "kernel", "  us    % bandwidth  % peak  % roof  share  tasks"]
    assert "".join(line.strip() for line in lines[3:5]) == name
    assert lines[5] == "  54.2  10 L2        11      12      6.8 %  24"
    assert lines[6].startswith("  schedule: 12x1 block of 8 lanes; ")
    assert "  weighed: [14x1]: 100 cycles, 12x1: 101 cycles" in lines
    assert lines[-2:] == ["short", lines[5]]
    monkeypatch.setenv("COLUMNS", "400")
    output.table("kernels", columns, [row])
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_help_of_every_command_fits_80_columns_whole() -> None:
    for command in COMMANDS:
        shown = invoke([command, "--help"], env={"COLUMNS": "80"}).stdout
        assert shown and not [line for line in shown.splitlines() if "…" in line or len(line) > 80], command


def test_short_help() -> None:
    assert invoke(["plan", "-h"]).stdout == invoke(["plan", "--help"]).stdout


def test_a_reader_that_stops_reading_is_no_error() -> None:
    program = "from landbridge.cli import main; import sys; sys.argv = ['landbridge', 'targets']; main()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == ""
        assert child.wait() == 1


PROGRAM = "from landbridge.cli import main; main()"


@pytest.mark.parametrize("closed", ["1", "2"])
def test_a_closed_stream_is_no_fault(closed: str) -> None:
    line = f'exec "$@" {closed}>&-'
    for arguments, code in ((["targets"], 0), (["targets", "lvm"], 1), (["nothing"], 2)):
        command = ["sh", "-c", line, "sh", sys.executable, "-c", PROGRAM, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == code and "Traceback" not in done.stderr, (arguments, done.stderr)


@pytest.mark.parametrize("line", ["--version", "targets"])
def test_a_full_disk_is_reported(line: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-c", PROGRAM, line], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    (reported,) = done.stderr.splitlines()
    assert reported.startswith("error: ") and "No space left on device" in reported


def test_characters_that_the_output_cannot_take() -> None:
    command = [sys.executable, "-c", PROGRAM, "plan", str(TINY), "--svg", "/模/a.svg"]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONIOENCODING": "ascii:strict"}, capture_output=True, text=True
    )
    assert done.returncode == 1 and "/\\u6a21/a.svg cannot be written" in done.stderr


def test_ctrl_c_ends_a_run_without_a_word() -> None:
    program = (
        "import signal; from landbridge.cli import main; import landbridge.cli.targets as t\n"
        "t._kinds = lambda: signal.raise_signal(signal.SIGINT)\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", program, "targets"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "no-such-file.onnx"], "does not exist"),
        (["run", str(TINY), "--shape", "x=1y2"], "is not NAME=DIMxDIM"),
        (["run", str(TINY), "--shape", "x=2", "--shape", "x=3"], "is not NAME=DIMxDIM"),
        (["run", str(TINY), "--shape", "x=-2"], "is not NAME=DIMxDIM"),
        (["run", str(TINY), "--input", "x"], "is not NAME=FILE.npy"),
        (["run", str(TINY), "--input", "x=nothing.npy"], "there is no file"),
        (["run", str(TINY), "--repeat", "0"], "--repeat"),
        (["run"], "MODEL"),
        (["opt"], "--list"),
        (["no-such-command"], "no-such-command"),
    ],
)
def test_wrong_usage_exits_with_2(arguments: list[str], says: str) -> None:
    done = invoke(arguments, env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert done.exit_code == 2
    assert says in done.stderr


def wait_for(condition: Callable[[], object]) -> None:
    """Waits until ``condition`` holds; fails after a minute."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(1e-3)


def test_progress_speaks_only_after_a_while(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with output.progress("waiting"):
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(output, "PROGRESS_AFTER", 0.01)
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    with output.progress("waiting"):
        wait_for(lambda: "waiting ..." in shown.getvalue())
    assert capsys.readouterr().out == ""


def test_a_terminal_shows_a_spinner_below_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(output, "PROGRESS_AFTER", 0.01)
    for name, value in (("TERM", "xterm"), ("COLUMNS", "40"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    with output.progress("compiling a.onnx"):
        begin_stage("plan")
        wait_for(lambda: "plan ..." in shown.getvalue())
        output.message("something was found")
        begin_stage("a stage with a name longer than a line")
        wait_for(lambda: "a stage with" in shown.getvalue())
    first, rest = shown.getvalue().split("something was found\n")
    assert "\r\x1b[2K⠋ compiling a.onnx: plan ..." in first and first.endswith("\r\x1b[2K")
    pictures = rest.split("\r\x1b[2K")
    assert pictures[-1] == "" and len(pictures) > 2
    assert max(map(len, pictures)) < 40 and "a stage with" in pictures[-2]
    output.message("done")
    assert shown.getvalue().endswith("\x1b[2Kdone\n")
    monkeypatch.setenv("TERM", "dumb")
    with output.progress("waiting"):
        wait_for(lambda: shown.getvalue().endswith("waiting ...\n"))
    assert shown.getvalue().endswith("\x1b[2Kdone\nwaiting ...\n")


def test_progress_says_the_stage_that_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(output, "PROGRESS_AFTER", 60)
    with output.progress("compiling"):
        begin_stage("place")
        monkeypatch.setattr(output, "PROGRESS_AFTER", 0.01)
        begin_stage("codegen")
        wait_for(shown.getvalue)
    begin_stage("none")  # nobody listens any more
    assert shown.getvalue() == "compiling: codegen ...\n"


def test_a_compile_tells_its_stages() -> None:
    reported: list[str] = []
    with listening(reported.append):
        lb.compile(Path(__file__).with_name("add.mlir"), dump=None, max_nodes=12345)
    assert reported[0] == "import" and reported[-1] == "codegen" and "plan" in reported


def test_a_fault_of_landbridge_is_one_line_and_its_traceback_is_there_for_the_asking(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(words: list[str]) -> int:
        raise ZeroDivisionError("of\nsomething")

    monkeypatch.setattr("landbridge.cli.app.app", fail)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "ZeroDivisionError: of something" in line and "LANDBRIDGE_TRACEBACK" in line
    monkeypatch.setenv("LANDBRIDGE_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        main()


def test_tags_that_cannot_be_linked_are_marked_and_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = {"kind": "llvm", "mtriple": "powerpc64le-unknown-linux-gnu", "mcpu": "generic"}
    monkeypatch.setitem(tags._TAGS, "talos", form)
    listed = json.loads(invoke(["targets", "--json"]).stdout)
    assert listed["not_linked"] == ["talos"]
    shown = invoke(["targets"], env={"COLUMNS": "250"}).stdout
    assert "powerpc64le cannot be linked yet" in " ".join(shown.split())
    (tmp_path / "none.onnx").write_bytes(b"not read")
    done = invoke(["compile", str(tmp_path / "none.onnx"), "-t", "talos"])
    assert (done.exit_code, "cannot be linked" in done.stderr, "ONNX" in done.stderr) == (1, True, False)
