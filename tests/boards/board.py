"""A board, emulated: its Python runs scripts and compiled programs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from landbridge.dtypes import numpy_dtype
from landbridge.executable.executable import Executable, pieces_of_file
from tests.boards import folder as unpacked

Array = np.ndarray[Any, Any]

_SOURCES = Path(__file__).parents[2] / "src"
_SERVE = Path(__file__).with_name("run_programs.py")


@dataclass(frozen=True)
class Board:
    """What ``folder`` has been unpacked to, run by the program ``qemu`` as the CPU ``cpu`` (QEMU's name).

    ``page``: bytes of a page of its memory, as kernels differ in. ``compiles``: whether it has the compiler's packages.
    """

    qemu: str
    folder: Path
    cpu: str = "cortex-a72"
    page: int = 4096
    compiles: bool = False

    def command(self, *arguments: str) -> list[str]:
        """The command that runs the board's Python with ``arguments``."""
        emulator = [self.qemu, "-cpu", self.cpu, "-p", str(self.page), "-L", str(self.folder)]
        emulator += ["-0", str(unpacked.python_here(self.folder, self.qemu))]
        # Without site: what is installed on this machine is none of the board's business.
        return [*emulator, str(unpacked.python(self.folder)), "-S", *arguments]

    @property
    def environment(self) -> dict[str, str]:
        """The environment of such a command: its packages, and this Landbridge."""
        packages = unpacked.compiler_packages if self.compiles else unpacked.site_packages
        home = str(self.folder / "usr")
        path = f"{packages(self.folder)}:{_SOURCES}:{unpacked.described(self.folder)}"
        # Compiling modules is more than half of what a process's imports take, and Debian's come without bytecode: it
        # is kept, whatever this machine does with its own.
        retained = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return {**retained, "PYTHONPATH": path, "PYTHONHOME": home, "PYTHONPYCACHEPREFIX": f"{self.folder}/bytecode"}

    @property
    def python_version(self) -> str:
        """As ``3.11``."""
        return unpacked.python(self.folder).name.removeprefix("python")

    def python(self, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The result of Python code that runs on the board."""
        command = self.command("-c", code, *arguments)
        return subprocess.run(command, env=self.environment, capture_output=True, text=True)

    def output(self, code: str, *arguments: str) -> str:
        """What Python code prints that runs on the board, and must succeed."""
        done = self.python(code, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


class ProgramRunner:
    """A process on a board that loads ``.lbx`` files and runs them, one after another; close it."""

    def __init__(self, board: Board, scratch: Path) -> None:
        self._board, self._scratch, self._values = board, scratch, count()
        #: What processes of the board, and the emulator itself, write to standard error.
        self._errors = scratch / "errors.txt"
        self._process = self._started()

    def _started(self) -> subprocess.Popen[str]:
        pipe, board = subprocess.PIPE, self._board
        with self._errors.open("w") as errors:
            return subprocess.Popen(
                board.command(str(_SERVE)), env=board.environment, stdin=pipe, stdout=pipe, stderr=errors, text=True
            )

    def __call__(self, executable: Executable, feeds: Mapping[str, Array], threads: int = 1) -> list[Array]:
        """The outputs of ``executable``, saved here and loaded there, for inputs by name."""
        name = self._scratch / f"program{next(self._values)}"
        # As ``save`` writes it, but no power fails here: waiting for the disk takes longer than most programs.
        Path(f"{name}.lbx").write_bytes(b"".join(pieces_of_file(executable)))
        order = [spec.name for spec in executable.main.inputs]
        np.savez(f"{name}.npz", *(_plain(feeds[spec]) for spec in order))
        if self._process.poll() is not None:  # a program before this one ended it
            self._process = self._started()
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        print(f"{name} {threads}", file=process.stdin, flush=True)
        answer = process.stdout.readline().strip()
        if answer != "done":
            ended = f"the board's process ended with status {process.wait()}" if not answer else ""
            raise AssertionError(f"{answer}{ended}\n{self._errors.read_text()}")
        with np.load(f"{name}.out.npz") as found:
            arrays = [found[key] for key in found.files]
        specs = executable.main.outputs
        return [
            array if spec.dtype == array.dtype.name else array.view(numpy_dtype(spec.dtype))
            for array, spec in zip(arrays, specs, strict=True)
        ]

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def _plain(array: Array) -> Array:
    """``array`` as the file format holds it: bits, where numpy itself has no such type."""
    return np.ascontiguousarray(array.view(np.uint16) if array.dtype.kind == "V" else array).reshape(array.shape)
