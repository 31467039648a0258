"""The script that installs what tests need: it leaves alone what is there, and asks for no root that there is not."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / ".ci" / "install-debian-packages"


def run(folder: Path, commands: dict[str, str], *names: str) -> subprocess.CompletedProcess[str]:
    """The script where PATH has ``ls``, ``commands`` by name as shell, and nothing else."""
    shell = shutil.which("sh")
    for name, text in {"ls": "exit 1", "python3": "exit 1", **commands}.items():
        (folder / name).write_text(f"#!{shell}\n{text}\n")
        (folder / name).chmod(0o755)
    assert shell is not None
    env = {"PATH": str(folder)}
    return subprocess.run([shell, SCRIPT, *names], env=env, capture_output=True, text=True, timeout=30, check=False)


def test_without_root_it_says_what_is_missing(tmp_path: Path) -> None:
    done = run(tmp_path, {"id": "echo 1000", "apt-get": "exit 1", "gcc": ""}, "no-such-package")
    assert done.returncode == 0
    assert "tests that need these are skipped: no-such-package" in done.stderr and " gcc " not in done.stderr


def test_without_apt_it_says_what_is_missing(tmp_path: Path) -> None:
    done = run(tmp_path, {"id": "echo 0"})
    assert done.returncode == 0 and "skipped: gcc libc6-dev" in done.stderr


def test_with_sudo_it_installs_what_is_missing(tmp_path: Path) -> None:
    requested = tmp_path / "asked"
    commands = {"id": "echo 1000", "apt-get": "exit 1", "sudo": f'echo "$@" >>{requested}', "make": ""}
    done = run(tmp_path, commands, "make", "no-such-package")
    assert done.returncode == 0, done.stderr
    update, install = requested.read_text().splitlines()
    assert update == "apt-get update -qq"
    assert "no-such-package gcc libc6-dev" in install and "make" not in install
