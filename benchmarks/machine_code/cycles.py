"""Cycles of loops by LLVM's models of cores, from its analyzer of machine code (llvm-mca): memory is always near."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from machine_code.disassembly import Instruction, Loop

#: Turns that are simulated: enough for the first ones not to matter.
_TURNS = 200
#: Whose model stands for a core that LLVM (22) has none of: it takes them for Cortex-A57, which has half the pipes.
#: Neoverse N1 is Cortex-A76 for servers (Arm, "Neoverse N1 Technical Reference Manual"); A78 is no narrower.
MODEL_OF = {"cortex-a76": "neoverse-n1", "cortex-a78ae": "neoverse-n1", "cortex-a78": "neoverse-n1"}


@dataclass(frozen=True)
class Cycles:
    """Cycles of one turn of a loop; what its multiply-adds alone would take if nothing else were in the way; and what
    they and the loads that fetch operands take, without addresses, counters and spills."""

    turn: float
    ideal: float
    loading: float


def cycles_of(loops: Mapping[str, Loop], cpu: str, llvm: Path) -> dict[str, Cycles]:
    """The cycles of each of ``loops``, by name, on ``cpu`` as LLVM calls it."""
    text = []
    for name, loop in loops.items():
        text += _region(f"{name} turn", loop.body)
        text += _region(f"{name} ideal", [i for i in loop.body if i.multiply_adds])
        needed = [i for i in loop.body if i.multiply_adds or (i.is_load and not i.spills)]
        text += _region(f"{name} loading", needed)
    options = ["-mtriple=aarch64", f"-mcpu={MODEL_OF.get(cpu, cpu)}", f"-iterations={_TURNS}", "--json"]
    done = subprocess.run([str(llvm / "llvm-mca"), *options], input="\n".join(text), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"llvm-mca: {done.stderr.strip()[:500]}")
    found: dict[str, float] = {}
    for region in json.loads(done.stdout)["CodeRegions"]:
        summary = region["SummaryView"]
        is_ideal = region["Name"].endswith(" ideal")
        found[region["Name"]] = summary["BlockRThroughput"] if is_ideal else summary["TotalCycles"] / _TURNS
    return {name: Cycles(*(found[f"{name} {what}"] for what in ("turn", "ideal", "loading"))) for name in loops}


def _region(name: str, code: Sequence[Instruction]) -> list[str]:
    lines = [f"{i.name} {re.sub(r'0x[0-9a-f]+$', '.', i.operands) if i.target else i.operands}" for i in code]
    return [f"# LLVM-MCA-BEGIN {name}", *lines, "# LLVM-MCA-END", ""]
