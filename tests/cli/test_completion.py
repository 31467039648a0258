"""What a line goes on with, by the functions that argcomplete makes for bash, and for zsh and fish where they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from landbridge.cli.app import COMMANDS
from tests.selection.installed import package, program

SOURCES = Path(__file__).parents[2] / "src"

#: What Tab does in bash: it calls the function that was registered with what was typed.
BASH = r"""
eval "$(register-python-argcomplete landbridge)"
COMP_WORDBREAKS=$' \t\n"\'><=;|&(:' COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9 COMP_KEY=9
IFS=' ' read -ra COMP_WORDS <<<"$1"
case $1 in *' ') COMP_WORDS+=('') ;; esac
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_python_argcomplete landbridge
printf '%s\n' "${COMPREPLY[@]}"
"""
#: fish says itself what it would propose.
FISH = "register-python-argcomplete --shell fish landbridge | source; complete --do-complete $argv[1]"
#: What Tab does in zsh, but for showing it: the words that the function describes are printed.
ZSH = r"""
autoload -Uz is-at-least
compdef() { : }
_describe() { print -rl -- "${(@P)2}" }
eval "$(register-python-argcomplete landbridge)"
BUFFER=$1 CURSOR=${#1} words=(${=1})
_python_argcomplete
"""


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """The environment of a shell in a folder with files, where ``landbridge`` is on PATH."""
    package("argcomplete", "test")
    script = tmp_path / "bin" / "landbridge"
    script.parent.mkdir()
    script.write_text(f"#!{sys.executable}\nfrom landbridge.cli import main\nmain()\n")
    script.chmod(0o755)
    (tmp_path / "model.onnx").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    (tmp_path / "x.npy").write_bytes(b"")
    path = f"{script.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(SOURCES), "HOME": str(tmp_path)}


def reported(command: list[str], folder: Path, environment: dict[str, str]) -> list[str]:
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return [line.strip() for line in done.stdout.splitlines()]


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("landbridge ", COMMANDS),
        ("landbridge con", ["conformance"]),
        ("landbridge --v", ["--version"]),
        ("landbridge run --th", ["--threads"]),
        ("landbridge run mo", ["model.onnx"]),
        ("landbridge upgrade none.lbx mo", ["model.onnx"]),
        ("landbridge run none.onnx --device opencl,c", ["opencl,cma", "opencl,cpu"]),
        ("landbridge run --device=c", ["cma", "cpu"]),
        ("landbridge run none.onnx --repeat ", [""]),
        ("landbridge run none.onnx --output-dir f", ["folder/"]),
        ("landbridge run none.onnx --input x=x", ["x.npy"]),
        ("landbridge compile none.onnx -t l", ["llvm"]),
        ("landbridge compile none.onnx --on-mismatch e", ["error"]),
        ("landbridge run none.onnx --memory-cfg cpu=p", ["pooled"]),
        ("landbridge targets graviton4", ["graviton4"]),
    ],
)
def test_in_bash(line: str, expected: list[str], shell: dict[str, str], tmp_path: Path) -> None:
    found = reported(["bash", "--norc", "-c", BASH, "bash", line], tmp_path, shell)
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("landbridge con", "conformance\tCheck that DEVICE keeps the device contract; exit with 3 when"),
        ("landbridge run none.onnx --device opencl,c", "opencl,cpu"),
        ("landbridge run --th", "--threads\tThreads to run on; all cores this process has if absent. (at least 1)"),
    ],
)
def test_in_fish(line: str, expected: str, shell: dict[str, str], tmp_path: Path) -> None:
    found = reported([program("fish", "shells"), "--no-config", "-c", FISH, line], tmp_path, shell)
    assert [entry for entry in found if entry.startswith(expected)], found


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("landbridge con", "conformance:Check that DEVICE keeps the device contract; exit with 3 when"),
        ("landbridge run none.onnx --device opencl,c", "opencl,cpu:"),
        ("landbridge run --th", "--threads:Threads to run on; all cores this process has if absent. (at least 1)"),
    ],
)
def test_in_zsh(line: str, expected: str, shell: dict[str, str], tmp_path: Path) -> None:
    found = reported([program("zsh", "shells"), "-f", "-c", ZSH, "zsh", line], tmp_path, shell)
    assert [entry for entry in found if entry.startswith(expected)], found


def test_without_argcomplete_nothing_is_proposed_nor_run(shell: dict[str, str], tmp_path: Path) -> None:
    code = "import sys; sys.modules['argcomplete'] = None; from landbridge.cli import main; main()"
    requested = {**shell, "_ARGCOMPLETE": "1", "COMP_LINE": "landbridge ", "COMP_POINT": "11"}
    done = subprocess.run(
        [sys.executable, "-c", code, "devices"], env=requested, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


def test_a_command_imports_none_of_it(tmp_path: Path) -> None:
    code = "import sys; from landbridge.cli.app import app; app(['targets']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert not {"argcomplete", "landbridge.cli.completion"} & set(done.stderr.split())
