"""Runs exported programs: as code of this machine, in this process, and on boards that QEMU has."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import landbridge as lb
from landbridge.dtypes import numpy_dtype
from landbridge.executable.c_export import export_c

EXAMPLE = Path(__file__).parents[2] / "examples" / "microcontroller"
#: What a run of a board may take: QEMU executes some hundred million instructions a second.
_SECONDS = 120

_HERE = ("-std=c11", "-O1", "-ffp-contract=fast", "-ffreestanding", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror")

Array = NDArray[Any]


@dataclass(frozen=True)
class Board:
    """A board of QEMU: its processor's target, and instructions in a clock of its timer under ``-icount shift=0``."""

    name: str
    target: str
    instructions_a_clock: float


#: Clocks of the boards' processors: 25 MHz, and 32 MHz of AN547; an instruction takes a nanosecond.
BOARDS = {
    board.name: board
    for board in (
        Board("mps2-an386", "cortex-m4", 40.0),
        Board("mps2-an500", "cortex-m7", 40.0),
        Board("mps2-an505", "cortex-m33", 50.0),
        Board("mps3-an547", "cortex-m55", 31.25),
    )
}


@dataclass(frozen=True)
class BoardRun:
    """What a program gave on a board: its outputs, all that it printed, and about how many instructions a run took."""

    outputs: list[Array]
    printed: str
    instructions: int
    elf: Path


def run_on_board(
    executable: lb.Executable,
    feeds: Mapping[str, Array],
    board: Board,
    folder: Path,
    *defines: str,
    optimize: str = "-O2",
) -> BoardRun:
    """Returns what ``executable`` gives on ``board``, exported to and built in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    export_c(executable, folder, "model")
    main = executable.main
    for number, spec in enumerate(main.inputs):
        np.ascontiguousarray(feeds[spec.name]).tofile(folder / f"input{number}")
    room = 64 + sum(spec.nbytes + 16 for spec in (*main.inputs, *main.outputs))
    given = [f"MODEL={folder}", f"BOARD={board.name}", f"OUT={folder / 'build'}", f"OPTIMIZE={optimize}"]
    command = ["make", "-C", str(EXAMPLE), *given, f"DEFINES={' '.join([f'-DIO_BYTES={room}', '-Werror', *defines])}"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[-4000:]
    elf = folder / "build" / "program.elf"
    emulator = ["qemu-system-arm", "-M", board.name, "-nographic", "-semihosting", "-icount", "shift=0", "-kernel"]
    # semihosting prints on the emulator's standard error
    done = subprocess.run([*emulator, elf], cwd=folder, capture_output=True, text=True, check=False, timeout=_SECONDS)
    printed = done.stdout + done.stderr
    assert done.returncode == 0, printed
    clocks = re.search(r"^clocks: (\d+)$", printed, re.MULTILINE)
    assert clocks, printed
    outputs = [
        np.fromfile(folder / f"output{number}", numpy_dtype(spec.dtype)).reshape(spec.shape)
        for number, spec in enumerate(main.outputs)
    ]
    return BoardRun(outputs, printed, round(int(clocks[1]) * board.instructions_a_clock), elf)


def run_here(
    executable: lb.Executable, feeds: Mapping[str, Array], folder: Path, flags: Sequence[str] = ()
) -> list[Array]:
    """Returns what ``executable`` gives as code of this machine's compiler, in this process."""
    folder.mkdir(parents=True, exist_ok=True)
    files = export_c(executable, folder, "model")
    library = folder / "model.so"
    sources = [str(file) for file in files if file.suffix == ".c"]
    options = [
        "-std=c11",
        "-O1",
        "-ffp-contract=fast",
        "-ffreestanding",
        "-fPIC",
        "-shared",
        "-Wall",
        "-Wextra",
        "-Werror",
    ]
    built = subprocess.run(
        ["gcc", *options, *flags, *sources, "-o", str(library)], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr[-4000:]
    program = Program(library, executable)
    return program.run(feeds)


class Program:
    """A program in a shared library, called as an application calls it."""

    def __init__(self, library: Path, executable: lb.Executable) -> None:
        self.library, self.main = ctypes.CDLL(os.fspath(library)), executable.main
        self.state = ctypes.create_string_buffer(8 * (len(self.main.inputs) + len(self.main.outputs) + 4))
        header = library.with_suffix(".h").read_text(encoding="utf-8")
        found = re.search(r"MODEL_MEMORY_BYTES UINT32_C\((\d+)\)", header)
        assert found
        self.memory_bytes = int(found[1])
        #: Guarded by bytes that no run may change.
        self.whole = np.full(self.memory_bytes + 96, 0xA5, np.uint8)
        self.start = -self.whole.ctypes.data % 16 + 16

    def call(self, function: str, *arguments: int) -> int:
        """Returns what a function of the program gives for itself and ``arguments``, numbers or addresses."""
        values = [ctypes.c_int32(a) if abs(a) < 1 << 31 else ctypes.c_void_p(a) for a in arguments]
        return int(self.library[f"model_{function}"](self.state, *values))

    def run(self, feeds: Mapping[str, Array]) -> list[Array]:
        """Returns the outputs for ``feeds``; memory around the program's own must stay as it was."""
        memory = self.whole.ctypes.data + self.start
        assert self.library.model_init(self.state, ctypes.c_void_p(memory), ctypes.c_uint32(self.memory_bytes)) == 0
        arrays = [np.ascontiguousarray(feeds[spec.name]) for spec in self.main.inputs]
        outputs = [np.zeros(spec.shape, numpy_dtype(spec.dtype)) for spec in self.main.outputs]
        for side, given in (("input", arrays), ("output", outputs)):
            for number, array in enumerate(given):
                address = ctypes.c_void_p(array.ctypes.data)
                assert self.library[f"model_set_{side}"](self.state, ctypes.c_int32(number), address) == 0
        assert self.library.model_run(self.state) == 0
        around = np.concatenate([self.whole[: self.start], self.whole[self.start + self.memory_bytes :]])
        assert (around == 0xA5).all()
        return list(outputs)
