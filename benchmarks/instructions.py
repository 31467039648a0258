"""What compiled models ask of an AArch64 core that is not here: instructions over a whole run, and cycles of its loops.

python benchmarks/instructions.py [--only cls] [--cpu raspberry-pi-4] [--kernels] [--llvm /usr/lib/llvm-22/bin]

A model is compiled for each board and run once under qemu-aarch64 with a plugin that counts instructions, packing of
inputs and results included. It is compared with a count by hand: the model's multiply-adds, four to an
instruction, and nothing else. Of each loop of products that has none inside, LLVM's analyzer says how many cycles a
iteration takes if its data is in L1, and how many its multiply-adds alone take, with and without their loads. For a
core whose maker documents a wider front end than LLVM's model has, it also says what the pipes of both allow.
``--kernels`` prints a line a kernel.
Needs Debian's qemu-user, gcc and llvm-22.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "ocr")]

from machine_code.cycles import Cycles, cycles_of  # noqa: E402
from machine_code.disassembly import Instruction, Loop, functions, innermost_loops  # noqa: E402
from machine_code.emulated_run import executions  # noqa: E402
from measure import write  # noqa: E402
from peers import MODELS, Model, inputs_of  # noqa: E402
from tests.boards import folder  # noqa: E402
from wheel_models import cache_folder  # noqa: E402

import landbridge as lb  # noqa: E402
from landbridge.executable.instructions import Call  # noqa: E402
from landbridge.executable.kernel_facts import facts_of, facts_of_call  # noqa: E402
from landbridge.executable.parts import CodeImage, KernelFacts  # noqa: E402
from landbridge.targets import Target  # noqa: E402

BOARDS = ("raspberry-pi-4", "raspberry-pi-5")
SHOWN = ("PP-OCRv4 cls", "PP-OCRv4 det", "PP-OCRv4 rec", "silero VAD step", "squeezenet", "shufflenet")
#: Lanes of a NEON vector of f32.
LANES = 4


@dataclass(frozen=True)
class Kernel:
    """One kernel over a whole run. ``needed``: vector instructions that its multiply-adds take at least."""

    name: str
    calls: int
    instructions: int
    needed: float
    loops: Sequence[tuple[Loop, int, Cycles]]

    @property
    def hottest(self) -> tuple[Loop, int, Cycles] | None:
        """The loop that multiplies and adds most, with its iterations and cycles."""
        return max(self.loops, key=lambda each: each[0].multiply_adds * each[1], default=None)


def kernels_of(executable: lb.Executable, feeds: Mapping[str, np.ndarray], cpu: str, llvm: Path) -> list[Kernel]:
    """The kernels of ``executable`` as they run on ``feeds``, by instructions, the most first."""
    image = executable.modules[0].image
    assert isinstance(image, CodeImage)
    counts = executions(executable, feeds, folder.fetch(cache_folder() / "boards"))
    code, facts = functions(image, llvm), facts_of(executable)
    calls = [i for i in executable.main.instructions if isinstance(i, Call)]
    called: dict[str, list[KernelFacts]] = {name: [] for name in code}
    for call in calls:
        if fact := facts_of_call(facts, call.function, call.name):
            called[call.function].append(fact)
    counted = Counter(call.function for call in calls)
    loops = {
        f"{name} {number}": loop
        for name, each in code.items()
        for number, loop in enumerate(innermost_loops(each))
        if loop.is_product and counts[loop.body[-1].offset]
    }
    cycles = cycles_of(loops, cpu, llvm)
    found = []
    for name, each in code.items():
        mine = [
            (loop, counts[loop.body[-1].offset], cycles[key])
            for key, loop in loops.items()
            if key.rpartition(" ")[0] == name
        ]
        needed = sum(f.flops / 2 / LANES for f in called[name])
        found.append(Kernel(name, counted[name], _executed(each, counts), needed, mine))
    return sorted(found, key=lambda k: -k.instructions)


def _executed(code: Sequence[Instruction], counts: Mapping[int, int]) -> int:
    return sum(counts[i.offset] for i in code)


def of_loop(loop: Loop, cycles: Cycles) -> list[object]:
    """Instructions a multiply-add, spills, bytes a FLOP; the share of ideal speed, of that with the dispatch that is
    stated, and of what the pipes allow then."""
    nbytes = sum(i.nbytes for i in loop.body)
    spills = sum(i.spills for i in loop.body)
    return [
        f"{len(loop.body) / loop.fused:.2f}",
        spills,
        f"{nbytes / (2 * loop.multiply_adds):.2f}",
        f"{cycles.ideal / cycles.iteration:.2f}",
        f"{cycles.ideal / cycles.wide:.2f}",
        f"{cycles.bound / cycles.wide:.2f}",
    ]


def row_of(model: str, board: str, kernels: Sequence[Kernel]) -> list[object]:
    """The line of a model on a board."""
    total, needed = sum(k.instructions for k in kernels), sum(k.needed for k in kernels)
    loops = [each for k in kernels for each in k.loops]
    spent = sum(iterations * cycles.iteration for _, iterations, cycles in loops)
    ideal, loading = (
        sum(iterations * getattr(c, subject) for _, iterations, c in loops) for subject in ("ideal", "loading")
    )
    hot = [k.hottest for k in kernels if k.hottest is not None]
    a_multiply_add = statistics.median(len(loop.body) / loop.fused for loop, _, _ in hot)
    share = sum(iterations * len(loop.body) for loop, iterations, _ in loops) / total
    spills = sum(sum(i.spills for i in loop.body) > 0 for loop, _, _ in hot)
    ratios = [f"{total / needed:.2f}", f"{share:.2f}", f"{a_multiply_add:.2f}"]
    ratios += [f"{ideal / spent:.2f}", f"{loading / spent:.2f}"]
    wide, bound = (sum(iterations * getattr(c, subject) for _, iterations, c in loops) for subject in ("wide", "bound"))
    ratios += [f"{ideal / wide:.2f}", f"{bound / wide:.2f}"]
    return [model, board, f"{total / 1e6:.3f}", f"{needed / 1e6:.3f}", *ratios, f"{spills} of {len(hot)}"]


def measured(name: str, model: Model, board: str, llvm: Path, print_kernels: bool) -> list[object]:
    """Compile and run a model for a board; its line."""
    executable = lb.compile(model.path(), board, shapes=model.shapes)
    kernels = kernels_of(executable, inputs_of(executable, model), Target(board).mcpu, llvm)
    if print_kernels:
        total = sum(k.instructions for k in kernels)
        print(f"\n{name} on {board}: kernel, calls, share of instructions, instructions by hand count, hottest loop:")
        print("instructions a multiply-add, spills, bytes a FLOP, shares of ideal speed, of what its pipes allow")
        for k in kernels:
            ratio = f"{k.instructions / k.needed:.2f}" if k.needed else "-"
            hottest = of_loop(k.hottest[0], k.hottest[2]) if k.hottest else []
            print(f"{k.name:60} {k.calls:3} {k.instructions / total:6.1%} {ratio:>7}  ", *hottest)
    return row_of(name, board, kernels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="models whose name holds this; nothing is written then")
    parser.add_argument("--cpu", default="", help="this board alone")
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--llvm", type=Path, default=Path("/usr/lib/llvm-22/bin"))
    given = parser.parse_args()
    rows = [
        measured(name, MODELS[name], board, given.llvm, given.kernels)
        for name in SHOWN
        if given.only in name
        for board in BOARDS
        if given.cpu in board
    ]
    columns = ["model", "board", "million instructions", "by hand", "ratio", "in inner loops"]
    columns += ["instructions a multiply-add, median", "of ideal speed"]
    columns += ["of its loads and multiply-adds", "of ideal speed, dispatch as stated", "of what its pipes allow"]
    columns += ["hot loops that spill"]
    if given.only or given.cpu:
        for row in rows:
            print(*row, sep=" | ")
    else:
        write("instructions", columns, rows)


if __name__ == "__main__":
    main()
