"""Instructions of whole runs on processors of boards that are not here: ARMv7 and RISC-V, counted by QEMU.

python benchmarks/board_instructions.py [--only cls]

Packing of inputs and results is included. The count by hand is that of the model's multiply-adds, as many to an
instruction as a vector has lanes of f32, and nothing else: no loads. QEMU models no time, so this says nothing of a
vector unit's.

No processor does with that count, as products have to be loaded. The second count adds the loads of the best tile of m
pixels by n vectors of channels that the registers allow, and still no loops, edges, functions, or divisions:

- NEON of ARMv7 has 16 registers. VMLA multiplies by a lane, so that the n vectors of weights of each of four channels
  meet m vectors of pixels: 4 m n multiplications. VLD1 loads two registers, and advances its address at no cost. Of all
  tiles with m n sums, m pixels and two weights in 16 registers, 4 by 2 loads the least: 2 times for the pixels and 4
  times for the weights, 6 for 32. VFMA, which rounds once, has no form by lane: a VDUP for each channel of each pixel
  would be half an instruction more. NEON has no division: VDIV of each element is right to the bit.
- RVV multiplies a vector by a scalar of a float register: a load of one element for each pixel and channel. Code uses
  groups of two vector registers, 16 of them, whose instructions do twice as much. 7 by 2 has 14 sums and two weights:
  14 multiplications, 7 loads of elements, 2 of vectors, and an addition to the address of each of these, as VLE has no
  offset: 25 for 28 multiplications of one register.

What the code does in a tile of 4 by 2 on ARMv7 is 43 for 32, or 1.34: pixels are loaded one by one (2 more than by
hand), and a loop counts, compares and branches (3 more). Pixels in pairs took 41 in some loops on Cortex-A9 and spilled
sums on A7. On RVV two iterations of a tile of 4 by 3 are 48 or 49 for 48; by hand two of 7 by 2 would be 55 for 56. The
rest of a run is at edges of images, between blocks of sums, in functions after sums, and, with registers of 256 bits,
in lanes behind the channels.

Needs Debian's qemu-user and gcc.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "ocr")]

from machine_code.emulated_run import instructions_of_run  # noqa: E402
from measure import write  # noqa: E402
from peers import MODELS, Model, inputs_of  # noqa: E402
from tests.boards import folder  # noqa: E402
from tests.boards.board import Board  # noqa: E402
from wheel_models import cache_folder  # noqa: E402

import landbridge as lb  # noqa: E402
from landbridge.executable.instructions import Call  # noqa: E402
from landbridge.executable.kernel_facts import facts_of, facts_of_call  # noqa: E402

SHOWN = ("PP-OCRv4 cls", "PP-OCRv4 det", "squeezenet")
_RISCV = "llvm -mtriple=riscv64-linux-gnu -mcpu=generic -mattr="


@dataclass(frozen=True)
class Processor:
    """What is compiled for, what QEMU emulates, and the lanes of f32 that a vector has there.

    ``loading``: instructions for each multiply-add of one register in the best tile, its loads included.
    """

    name: str
    target: str
    qemu: str
    cpu: str
    contents: folder.Contents
    lanes: int
    loading: float


def _riscv(name: str, attributes: str, bits: int) -> Processor:
    cpu = f"rv64,v=true,vext_spec=v1.0,vlen={bits},elen=64"
    return Processor(name, _RISCV + attributes, "qemu-riscv64", cpu, folder.RISCV64, bits // 32, 25 / 28)


PROCESSORS = (
    Processor("Cortex-A9, NEON", "pynq-z2", "qemu-arm", "cortex-a9", folder.ARMHF, 4, 38 / 32),
    Processor("Cortex-A7, NEON", "raspberry-pi-zero-2-32", "qemu-arm", "cortex-a7", folder.ARMHF, 4, 38 / 32),
    _riscv("RVV, any length, 128 bits", "+v", 128),
    _riscv("RVV, 256 bits and more", "+v,+zvl256b", 256),
)


def row(name: str, model: Model, processor: Processor) -> list[object]:
    """The line of a model on a processor, in millions of instructions."""
    executable = lb.compile(model.path(), processor.target, shapes=model.shapes)
    board = Board(processor.qemu, folder.fetch(cache_folder() / "boards", processor.contents), processor.cpu)
    executed = instructions_of_run(executable, inputs_of(executable, model), board)
    facts = facts_of(executable)
    calls = [each for each in executable.main.instructions if isinstance(each, Call)]
    known = [fact for call in calls if (fact := facts_of_call(facts, call.function, call.name))]
    needed = sum(fact.flops / 2 / processor.lanes for fact in known)
    counts = [f"{count / 1e6:.3f}" for count in (executed, needed, needed * processor.loading)]
    return [name, processor.name, *counts, f"{executed / needed:.2f}", f"{executed / needed / processor.loading:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="models whose name holds this; nothing is written then")
    given = parser.parse_args()
    names = [name for name in SHOWN if given.only in name]
    rows = [row(name, MODELS[name], processor) for name in names for processor in PROCESSORS]
    columns = ["model", "processor", "million instructions", "by hand", "with loads", "ratio", "of that with loads"]
    if given.only:
        for each in rows:
            print(*each, sep=" | ")
    else:
        write("board_instructions", columns, rows)


if __name__ == "__main__":
    main()
