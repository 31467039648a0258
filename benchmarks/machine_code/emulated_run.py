"""How often each instruction of a compiled program runs, counted by QEMU over one whole run."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from tests.boards import folder as unpacked

import landbridge as lb

_HERE = Path(__file__).parent
_SOURCES = _HERE.parents[1] / "src"
_INSTRUCTION_BYTES = 4


def executions(executable: lb.Executable, feeds: Mapping[str, np.ndarray], board: Path) -> Counter[int]:
    """How often the instruction at each offset of the first image runs when ``executable`` is run once, on one thread.

    ``board``: the folder of AArch64 programs. What a Session computes ahead of its first run counts too.
    """
    with tempfile.TemporaryDirectory() as scratch:
        plugin, counts, program, arrays = (f"{scratch}/{name}" for name in ("count.so", "out", "p.lbx", "p.npz"))
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", plugin, str(_HERE / "count_blocks.c")], check=True)
        executable.save(program)
        np.savez(arrays, **feeds)  # type: ignore[arg-type]
        emulator = ["qemu-aarch64", "-cpu", "max", "-plugin", f"{plugin},out={counts}", "-L", str(board)]
        command = [*emulator, str(unpacked.python(board)), "-S", str(_HERE / "run_once.py"), program, arrays]
        paths = {
            "PYTHONPATH": f"{unpacked.site_packages(board)}:{_SOURCES}",
            "PYTHONPYCACHEPREFIX": f"{board}/bytecode",
        }
        done = subprocess.run(command, env={**os.environ, **paths}, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the emulated run failed: {done.stderr.strip()[-500:]}")
        return _by_offset(Path(counts), int(done.stdout.split()[0]), len(executable.modules[0].image.code))


def _by_offset(counts: Path, base: int, size: int) -> Counter[int]:
    found: Counter[int] = Counter()
    with counts.open() as lines:
        for line in lines:
            address, instructions, count = map(int, line.split())
            if base <= address < base + size:
                for i in range(instructions):
                    found[address - base + i * _INSTRUCTION_BYTES] += count
    return found
