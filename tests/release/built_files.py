"""The two files of a release, built as for an upload."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class BuiltFiles:
    """The wheel, and the source archive that it was built from."""

    wheel: Path
    source: Path

    @property
    def version(self) -> str:
        """As the wheel's name has it."""
        return self.wheel.name.split("-")[1]

    def unpack_source(self, folder: Path) -> Path:
        """The folder of the source archive, unpacked below ``folder``."""
        shutil.unpack_archive(self.source, folder)
        return folder / self.source.name.removesuffix(".tar.gz")


def find(folder: Path) -> BuiltFiles:
    """The files in ``folder``; raises FileNotFoundError where they are not one wheel and one source archive."""
    wheels, sources = list(folder.glob("landbridge-*.whl")), list(folder.glob("landbridge-*.tar.gz"))
    if len(wheels) != 1 or len(sources) != 1:
        found = ", ".join(sorted(file.name for file in folder.glob("*"))) or "nothing"
        raise FileNotFoundError(
            f"{folder} must have one wheel and one source archive, and has {found}; python -m build makes them in dist"
        )
    return BuiltFiles(wheels[0], sources[0])


def build(folder: Path) -> BuiltFiles:
    """Builds the source archive of this repository and of it the wheel, in ``folder``, with the installed tools."""
    command = [sys.executable, "-P", "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return find(folder)
