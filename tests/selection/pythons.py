"""The Pythons of this machine, by their versions."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

#: Those that an installation is for, ``t`` for the build that needs no lock for all threads.
VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.14t")

_SAYS = """
import ctypes, ssl, sys, sysconfig, venv
print("%d.%d" % sys.version_info[:2] + ("t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""))
"""


def version_of(python: Path) -> str | None:
    """The version of the program ``python``, as ``3.14t``; None where it does not run or lacks a part of Python."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    try:
        done = subprocess.run([python, "-I", "-c", _SAYS], capture_output=True, text=True, env=environment)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def find(version: str) -> Path | None:
    """A Python of ``version``: on PATH, of pyenv, or in /opt/pythonVERSION; None where there is none."""
    return next((each for each in _candidates(version) if version_of(each) == version), None)


def _candidates(version: str) -> Iterator[Path]:
    name = f"python{version}"
    folders = [Path(entry) for entry in os.environ.get("PATH", "").split(os.pathsep) if entry]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    folders += sorted(pyenv.glob("versions/*/bin"), reverse=True)
    folders.append(Path("/opt") / name / "bin")
    yield from (folder / name for folder in folders if os.access(folder / name, os.X_OK))
