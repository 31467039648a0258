"""``--on ssh://board``: compiled here, run behind an sshd by the AArch64 Python, and by this machine's."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import landbridge as lb
from landbridge.cli.on_board.address import BoardAddress
from landbridge.cli.on_board.board import install_line
from tests.boards.board import Board
from tests.boards.ssh_server import NAME, SshServer
from tests.selection.installed import program
from tests.whole_models.small_models import edges

SOURCES = Path(__file__).parents[2] / "src"
#: Seconds that a command may take, so that none hangs.
LIMIT = 300
ON = f"ssh://{NAME}"


def write_landbridge(file: Path, command: list[str], environment: Mapping[str, str]) -> None:
    """A ``landbridge`` that runs from the source tree."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"export {name}='{value}'" for name, value in environment.items() if name.startswith("PYTHON")]
    file.write_text("\n".join(["#!/bin/sh", *lines, f'exec {shlex.join(command)} -m landbridge "$@"', ""]))
    file.chmod(0o755)


class Desk:
    """Runs ``landbridge`` here; ``home``: the folder of the board behind the server."""

    def __init__(self, server: SshServer, home: Path) -> None:
        self.server, self.home = server, home

    def start(self, *words: str) -> subprocess.Popen[str]:
        environment = {
            **os.environ,
            "PATH": f"{self.server.bin}:{os.environ['PATH']}",
            "PYTHONPATH": str(SOURCES),
            "COLUMNS": "200",
            "NO_COLOR": "1",
        }
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [sys.executable, "-m", "landbridge", *words], env=environment, stdout=pipe, stderr=pipe, text=True
        )

    def __call__(self, *words: str) -> tuple[int, str, str]:
        started = self.start(*words)
        stdout, stderr = started.communicate(timeout=LIMIT)
        return started.returncode, stdout, stderr

    def json(self, *words: str) -> Any:
        code, stdout, stderr = self(*words, "--json")
        assert code == 0, stderr
        return json.loads(stdout)

    @property
    def programs(self) -> list[str]:
        """Programs that lie on the board."""
        return sorted(file.name for file in (self.home / "cache/landbridge/boards").glob("*"))


MakeDesk = Callable[[list[str], Mapping[str, str]], Desk]


@pytest.fixture
def make_desk(tmp_path: Path) -> Iterator[MakeDesk]:
    """Of a board's command for Python and its environment."""
    servers = []

    def make(command: list[str], environment: Mapping[str, str]) -> Desk:
        home = tmp_path / "home"
        (tmp_path / "server").mkdir()
        if command:
            write_landbridge(home / "bin/landbridge", command, environment)
        variables = {"PATH": f"{home}/bin:/usr/bin:/bin", "XDG_CACHE_HOME": f"{home}/cache", "HOME": str(home)}
        server = SshServer(program("sshd", "boards"), tmp_path / "server", variables)
        servers.append(server)
        return Desk(server, home)

    yield make
    for server in servers:
        server.close()


@pytest.fixture
def arm(make_desk: MakeDesk, board: Board) -> Desk:
    """A board of AArch64; ``uname`` of its shell is this machine's, so that landbridge has to be asked."""
    return make_desk(board.command(), board.environment)


@pytest.fixture
def narrow(make_desk: MakeDesk, armv7_board: Board) -> Desk:
    """A board of ARMv7, whose Python has addresses of 32 bits and no ml-dtypes."""
    return make_desk(armv7_board.command(), armv7_board.environment)


@pytest.fixture
def same(make_desk: MakeDesk) -> Desk:
    """A board of this machine's instruction set."""
    return make_desk([sys.executable], {"PYTHONPATH": str(SOURCES), "PYTHONDONTWRITEBYTECODE": "1"})


@pytest.fixture
def model(tmp_path: Path) -> Path:
    onnx.save(edges(24, 32), tmp_path / "edges.onnx")
    return tmp_path / "edges.onnx"


@pytest.fixture
def x(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(1, 3, 24, 32)).astype(np.float32))
    return tmp_path / "x.npy"


def open_model(file: Path) -> Path:
    """``y = exp(x)`` on rows of any number."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ("N", 8)) for name in ("x in", "y/out"))
    graph = helper.make_graph([helper.make_node("Exp", ["x in"], ["y/out"])], "open", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)
    return file


def test_run_on_an_aarch64_board(arm: Desk, model: Path, x: Path, tmp_path: Path) -> None:
    line = ["run", str(model), "-t", "raspberry-pi-4", "-i", f"x={x}", "--repeat", "2", "--threads", "2", "--on", ON]
    found = arm.json(*line, "--output-dir", str(tmp_path / "out"), "--trace", str(tmp_path / "trace.json"), "--memory")
    assert (found["on"], found["model"], found["repeat"]) == (ON, str(model), 2)
    assert found["latency_ms"]["min"] > 0 and found["compile_s"] > 0 and found["memory_use"]
    (wanted,) = lb.Session(lb.compile(model))(np.load(x))
    # Sums of another order: 48 terms of about 2, each rounded.
    np.testing.assert_allclose(np.load(found["outputs"][0]["file"]), np.asarray(wanted), rtol=0, atol=1e-5)
    assert json.loads((tmp_path / "trace.json").read_text())
    (name,) = arm.programs
    first = (arm.home / "cache/landbridge/boards" / name).stat()
    code, stdout, stderr = arm(*line)  # once more, as text
    assert code == 0, stderr
    assert "median ms" in stdout and "copies in one run: none" in stdout
    second = (arm.home / "cache/landbridge/boards" / name).stat()
    assert (arm.programs, second.st_ino) == ([name], first.st_ino), "it was copied again"
    assert second.st_mtime_ns > first.st_mtime_ns, "its use was not noted"


def test_run_and_compare_on_an_armv7_board(narrow: Desk, model: Path, x: Path, tmp_path: Path) -> None:
    line = ["-t", "pynq-z2", "-i", f"x={x}", "--on", ON]
    found = narrow.json("run", str(model), "--threads", "2", "--output-dir", str(tmp_path / "out"), *line)
    (wanted,) = lb.Session(lb.compile(model))(np.load(x))
    # Sums of another order: 48 terms of about 2, each rounded.
    np.testing.assert_allclose(np.load(found["outputs"][0]["file"]), np.asarray(wanted), rtol=0, atol=1e-5)
    assert narrow.json("compare", str(model), *line)["equal"]
    code, _, stderr = narrow("run", str(model), "-t", "raspberry-pi-zero-2-32", "--on", ON)
    assert code == 1 and "CPU features this machine lacks: idiva, vfpv4" in stderr
    code, _, stderr = narrow("run", str(model), "-t", "raspberry-pi-4", "--on", ON)
    assert code == 1 and "compiled for aarch64, ssh://board is armv7; compile the model for it" in stderr


def test_run_on_a_riscv_board(make_desk: MakeDesk, riscv64_board: Board, model: Path, x: Path, tmp_path: Path) -> None:
    desk = make_desk(riscv64_board.command(), riscv64_board.environment)
    target = "llvm -mtriple=riscv64-linux-gnu -mcpu=generic -mattr=+v"
    found = desk.json(
        "run", str(model), "-t", target, "-i", f"x={x}", "--threads", "2", "--on", ON, "--output-dir", str(tmp_path)
    )
    (wanted,) = lb.Session(lb.compile(model))(np.load(x))
    # Sums of another order: 48 terms of about 2, each rounded.
    np.testing.assert_allclose(np.load(found["outputs"][0]["file"]), np.asarray(wanted), rtol=0, atol=1e-5)
    code, _, stderr = desk("run", str(model), "-t", f"{target},+zvl512b", "-i", f"x={x}", "--on", ON)
    assert code == 1 and "CPU features this machine lacks: zvl512b" in stderr


def test_the_other_commands_on_an_aarch64_board(arm: Desk, model: Path, x: Path, tmp_path: Path) -> None:
    (result,) = arm.json("bench", str(model), "--rounds", "2", "--threads", "1", "--on", ON)["results"]
    assert result["landbridge"]["median_ms"] > 0 and result["ratio"] is None
    compared = arm.json("compare", str(model), "-t", "raspberry-pi-4", "-i", f"x={x}", "--every", "--on", ON)
    assert compared["equal"] and compared["intermediates_compared"] > 1
    line = ["explain", str(model), "-t", "raspberry-pi-4", "--runs", "2", "--threads", "1", "--on", ON]
    explained = arm.json(*line, "--html", str(tmp_path / "roof.html"))
    assert explained["limits"]["flops"] > 0 and {level["name"] for level in explained["limits"]["levels"]} > {"memory"}
    assert explained["threads"] == 1 and all(kernel["schedule"] for kernel in explained["kernels"])
    assert (compared["on"], explained["on"]) == (ON, ON)
    assert "edges" in (tmp_path / "roof.html").read_text()


def test_open_sizes_and_names_that_a_shell_would_read(same: Desk, tmp_path: Path) -> None:
    model = open_model(tmp_path / "it's $HOME.onnx")
    np.save(tmp_path / "a b.npy", np.full((5, 8), 2, np.float32))
    out = str(tmp_path / "out")
    found = same.json("run", str(model), "-i", f"x in={tmp_path / 'a b.npy'}", "--output-dir", out, "--on", ON)
    np.testing.assert_allclose(np.load(found["outputs"][0]["file"]), np.full((5, 8), np.exp(2), np.float32), rtol=1e-6)
    at = same.json("run", str(model), "--at", "N=3", "--output-dir", out, "--on", ON)
    assert at["outputs"][0]["shape"] == [3, 8] and len(same.programs) == 1
    assert same.json("compare", str(model), "--at", "N=3", "--on", ON)["equal"]


def test_a_compiled_file_runs_there_and_one_of_another_isa_is_refused(same: Desk, model: Path, tmp_path: Path) -> None:
    lb.compile(model).save(tmp_path / "here.lbx")
    assert same.json("run", str(tmp_path / "here.lbx"), "--on", ON)["compile_s"] == 0
    lb.compile(model, "raspberry-pi-5").save(tmp_path / "pi.lbx")
    code, _, stderr = same("run", str(tmp_path / "pi.lbx"), "--on", ON)
    assert code == 1 and "compiled for aarch64, ssh://board is x86_64; compile the model for it" in stderr
    assert len(same.programs) == 1, "it was copied in vain"
    (tmp_path / "none.onnx").touch()  # before anything is compiled
    code, _, stderr = same("run", str(tmp_path / "none.onnx"), "-t", "raspberry-pi-5", "--on", ON)
    assert code == 1 and "compiled for aarch64, ssh://board is x86_64; compile the model for it" in stderr


def test_what_is_written_is_reported_by_its_name_here(same: Desk, model: Path, tmp_path: Path) -> None:
    trace = tmp_path / "tr ace.json"
    code, _, stderr = same("run", str(model), "--repeat", "1", "--trace", str(trace), "--on", ON)
    assert code == 0 and f"wrote {trace};" in stderr and "run." not in stderr


def test_the_boards_own_errors_name_the_files_of_the_desk(same: Desk, model: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.npy"
    np.save(wrong, np.zeros(3, np.float32))
    code, stdout, stderr = same("run", str(model), "-i", f"x={wrong}", "--on", ON, "--json")
    assert code == 1 and f"{wrong} holds float32 of shape (3,)" in stderr and "landbridge run on ssh://board" in stderr
    assert json.loads(stdout)["error"]["kind"] == "BoardError"
    assert [name for name in same.programs if name.startswith("run.")] == [], "the folder of the run stayed"


def test_a_finding_of_the_sanitizer_is_reported_as_here(same: Desk, model: Path) -> None:
    found = same.json("run", str(model), "--sanitize", "--repeat", "1", "--on", ON)
    assert found["outputs"]


@pytest.mark.parametrize(
    ("version", "line"),
    [
        (
            "1.2.0",
            "ssh -p 22 me@board 'python3 -m venv --clear ~/.landbridge && ~/.landbridge/bin/pip install --no-compile "
            "landbridge==1.2.0 && ~/.landbridge/bin/pip uninstall -qy setuptools pip'",
        ),
        (
            "1.2.0.dev3+g12",
            "pip wheel --no-deps . && scp -P 22 ./landbridge-1.2.0.dev3+g12-py3-none-any.whl me@board: && "
            "ssh -p 22 me@board 'python3 -m venv --clear ~/.landbridge && ~/.landbridge/bin/pip install --no-compile "
            "./landbridge-1.2.0.dev3+g12-py3-none-any.whl && ~/.landbridge/bin/pip uninstall -qy setuptools pip'",
        ),
    ],
)
def test_the_line_that_installs_this_version_there(version: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("landbridge.cli.on_board.board.__version__", version)
    assert install_line(BoardAddress.parse("ssh://me@board:22")) == line


def test_what_is_wrong_with_a_board_is_reported(make_desk: MakeDesk, model: Path) -> None:
    desk = make_desk([], {})
    server, line = desk.server, ["run", str(model), "--on"]

    def message(on: str) -> str:
        code, _, stderr = desk(*line, on)
        assert code == 1, stderr
        return stderr

    install = install_line(BoardAddress.parse(ON))
    assert f"no landbridge on PATH, in ~/.local/bin or ~/.landbridge/bin; install it there: {install}" in message(ON)
    assert "has no /opt/landbridge; install" in message(f"{ON}/opt/landbridge")
    other = desk.home / "bin/landbridge"
    other.parent.mkdir(parents=True)
    other.write_text("#!/bin/sh\necho 'landbridge 0.0.1 (aarch64, Python 3.10.1)'\n")
    other.chmod(0o755)
    assert f"has landbridge 0.0.1, this is {lb.__version__};" in message(ON)
    other.write_text("#!/bin/sh\necho 'no module named numpy' >&2; exit 3\n")
    assert "does not say which it is (status 3: no module named numpy)" in message(ON)
    assert "Connection refused; try by hand: ssh -p 1 127.0.0.1" in message("ssh://127.0.0.1:1")
    assert "Could not resolve hostname no-such-board.invalid" in message("ssh://no-such-board.invalid")
    server.write_client("/dev/null")
    assert "connect by hand once to see and accept its key: ssh board" in message(ON)
    other_key = (server.folder / "user.pub").read_text().split()[1]
    (server.folder / "changed").write_text(f"[127.0.0.1]:{server.port} ssh-ed25519 {other_key}\n")
    server.write_client(f"{server.folder}/changed")
    output = message(ON)
    assert f"Offending ED25519 key in {server.folder}/changed:1" in output and "@@@" not in output
    assert "take that line out of that file and connect by hand once to accept the new key: ssh board" in output
    server.write_client(f"{server.folder}/known")
    (server.folder / "authorized").write_text("")
    assert "so it needs a key: ssh-copy-id board" in message(ON)
    (server.bin / "ssh").write_text('#!/bin/sh\nexec /usr/bin/ssh -o ConnectTimeout=1 -o HostName=10.255.255.1 "$@"\n')
    for wrong in ("board", "http://board", "ssh://", "ssh://-oProxyCommand=x", "ssh://a@-b", "ssh://board:99999"):
        code, _, stderr = desk(*line, wrong)
        assert code == 2 and "is not ssh://[USER@]HOST[:PORT]" in " ".join(stderr.split()), stderr


def test_what_is_for_a_person_at_the_board(same: Desk, model: Path, x: Path, tmp_path: Path) -> None:
    """A shell there that greets, a configuration here that runs a command and forwards a port."""
    with (same.server.folder / "config").open("a") as configuration:
        configuration.write(f" RemoteCommand tmux\n LocalForward {same.server.port} localhost:1\n")
        configuration.write(" ExitOnForwardFailure yes\n")
    ssh = same.server.bin / "ssh"
    ssh.write_text(ssh.read_text().replace("exec", "echo Welcome; echo; exec"))
    line = ["run", str(model), "-i", f"x={x}", "--repeat", "1", "--output-dir", str(tmp_path / "out"), "--on", ON]
    for _ in range(2):
        (output,) = same.json(*line)["outputs"]
        assert np.load(output["file"]).shape == tuple(output["shape"])


def test_without_ssh(same: Desk, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/none")
    (same.server.bin / "ssh").unlink()
    code, _, stderr = same("run", str(model), "--on", ON)
    assert code == 1 and "apt-get install openssh-client" in stderr


def test_a_host_that_answers_nothing(same: Desk, model: Path) -> None:
    # A server that accepts and says nothing, which is what a hung board does.
    import socket

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        code, _, stderr = same("run", str(model), "--on", f"ssh://127.0.0.1:{silent.getsockname()[1]}")
    assert code == 1 and "timed out" in stderr and "is it on, and in this network?" in stderr


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_what_runs_there_ends_with_the_command_here(same: Desk, model: Path, ending: signal.Signals) -> None:
    noted = same.home / "pid"
    same.json("run", str(model), "--repeat", "1", "--on", ON)
    script = same.home / "bin/landbridge"
    text = script.read_text()
    waiting = f'[ "$1" = run ] && {{ echo $$ >{noted}; exec sleep {LIMIT}; }}'
    script.write_text(text.replace("#!/bin/sh\n", f"#!/bin/sh\n{waiting}\n"))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background has it ignored
    started = same.start("run", str(model), "--on", ON)
    signal.signal(signal.SIGINT, before)
    end = time.monotonic() + 60
    while not noted.exists() or not noted.read_text().strip():
        assert time.monotonic() < end and started.poll() is None
        time.sleep(0.05)
    started.send_signal(ending)
    started.communicate(timeout=60)
    there = Path("/proc", noted.read_text().strip())
    while there.exists() and "sleep" in (there / "cmdline").read_text():
        assert time.monotonic() < end, "it runs on"
        time.sleep(0.05)
