"""Cycles of loops by LLVM's models of cores, from its analyzer of machine code (llvm-mca): memory is always near."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from machine_code.disassembly import Instruction, Loop

#: Iterations that are simulated: enough for the first ones not to matter.
_ITERATIONS = 200
#: Whose model stands for a core that LLVM (22) has none of: it takes them for Cortex-A57, which has half the pipes.
#: Neoverse N1 is Cortex-A76 for servers (Arm, "Neoverse N1 Technical Reference Manual"); A78 is no narrower.
MODEL_OF = {"cortex-a76": "neoverse-n1", "cortex-a78ae": "neoverse-n1", "cortex-a78": "neoverse-n1"}
#: Micro-operations and instructions that a core dispatches in a cycle, where LLVM's model is narrower than the core.
#: Neoverse N1: "IssueWidth = 8; // Maximum micro-ops dispatch rate" in AArch64SchedNeoverseN1.td of LLVM 17 to 21,
#: from Arm's "Neoverse N1 Software Optimization Guide", 4.1, which has four instructions a cycle as well (LLVM's issue
#: 136374 cites both). LLVM 22 has 3 for the 8, the best of five for what its scheduler makes of some programs (pull
#: request 154495): with it, loads of vectors are two micro-operations each and LDP of two is three, so that beside two
#: multiply-adds a cycle there is room for half a load.
FRONT_END = {"neoverse-n1": (8, 4)}


@dataclass(frozen=True)
class Cycles:
    """Cycles of one iteration of a loop by LLVM's model; what its multiply-adds alone would take if nothing else were
    in the way; and what they and the loads that fetch operands take, without addresses, counters and spills. ``wide``
    and ``bound``: of a core with the front end that its maker states, an iteration's, and the least that the pipes of
    its multiply-adds and loads allow."""

    iteration: float
    ideal: float
    loading: float
    wide: float
    bound: float


def cycles_of(loops: Mapping[str, Loop], cpu: str, llvm: Path) -> dict[str, Cycles]:
    """The cycles of each of ``loops``, by name, on ``cpu`` as LLVM calls it."""
    model = MODEL_OF.get(cpu, cpu)
    width, instructions = FRONT_END.get(model, (0, 0))
    narrow = _analyzed(loops, model, llvm)
    wide = _analyzed(loops, model, llvm, f"-dispatch={width}") if width else narrow
    found = {}
    for name, loop in loops.items():
        iteration, ideal, loading = (narrow[f"{name} {subject}"] for subject in ("iteration", "ideal", "loading"))
        fetched = len(loop.body) / instructions if instructions else 0
        bound = wide[f"{name} loading"]
        found[name] = Cycles(
            iteration.cycles, ideal.pipes, loading.cycles, max(wide[f"{name} iteration"].cycles, fetched), bound.pipes
        )
    return found


@dataclass(frozen=True)
class _Region:
    """Cycles that code takes, iteration after iteration, and that its pipes are busy."""

    cycles: float
    pipes: float


def _analyzed(loops: Mapping[str, Loop], model: str, llvm: Path, *options: str) -> dict[str, _Region]:
    text = []
    for name, loop in loops.items():
        text += _region(f"{name} iteration", loop.body)
        text += _region(f"{name} ideal", [i for i in loop.body if i.multiply_adds])
        needed = [i for i in loop.body if i.multiply_adds or (i.is_load and not i.spills)]
        text += _region(f"{name} loading", needed)
    command = [
        str(llvm / "llvm-mca"),
        "-mtriple=aarch64",
        f"-mcpu={model}",
        f"-iterations={_ITERATIONS}",
        "--json",
        *options,
    ]
    done = subprocess.run(command, input="\n".join(text), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"llvm-mca: {done.stderr.strip()[:500]}")
    summaries = {region["Name"]: region["SummaryView"] for region in json.loads(done.stdout)["CodeRegions"]}
    return {name: _Region(s["TotalCycles"] / _ITERATIONS, s["BlockRThroughput"]) for name, s in summaries.items()}


def _region(name: str, code: Sequence[Instruction]) -> list[str]:
    lines = [f"{i.name} {re.sub(r'0x[0-9a-f]+$', '.', i.operands) if i.target else i.operands}" for i in code]
    return [f"# LLVM-MCA-BEGIN {name}", *lines, "# LLVM-MCA-END", ""]
