"""How often each instruction of a compiled program runs, counted by QEMU over one whole run."""

from __future__ import annotations

import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from tests.boards.board import Board

import landbridge as lb

_HERE = Path(__file__).parent
_INSTRUCTION_BYTES = 4


def executions(executable: lb.Executable, feeds: Mapping[str, np.ndarray], board: Path) -> Counter[int]:
    """How often the instruction at each offset of the first image runs when ``executable`` is run once, on one thread.

    ``board``: the folder of AArch64 programs. What a Session computes ahead of its first run counts too.
    """
    found: Counter[int] = Counter()
    for address, instructions, count in _blocks(executable, feeds, Board("qemu-aarch64", board, "max")):
        for i in range(instructions):
            found[address + i * _INSTRUCTION_BYTES] += count
    return found


def instructions_of_run(executable: lb.Executable, feeds: Mapping[str, np.ndarray], board: Board) -> int:
    """How many instructions of the first image ``board`` executes in a run, on one thread; as ``executions``."""
    return sum(instructions * count for _, instructions, count in _blocks(executable, feeds, board))


def _blocks(executable: lb.Executable, feeds: Mapping[str, np.ndarray], board: Board) -> Iterator[tuple[int, int, int]]:
    """Yields each block of the image that is executed: its offset, its instructions, and how often it is."""
    with tempfile.TemporaryDirectory() as scratch:
        plugin, counts, program, arrays = (f"{scratch}/{name}" for name in ("count.so", "out", "p.lbx", "p.npz"))
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", plugin, str(_HERE / "count_blocks.c")], check=True)
        executable.save(program)
        np.savez(arrays, **feeds)  # type: ignore[arg-type]
        emulator, *command = board.command(str(_HERE / "run_once.py"), program, arrays)
        command = [emulator, "-plugin", f"{plugin},out={counts}", *command]
        done = subprocess.run(command, env=board.environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the emulated run failed: {done.stderr.strip()[-500:]}")
        base, size = int(done.stdout.split()[0]), len(executable.modules[0].image.code)
        with Path(counts).open() as lines:
            for line in lines:
                address, instructions, count = map(int, line.split())
                if base <= address < base + size:
                    yield address - base, instructions, count
