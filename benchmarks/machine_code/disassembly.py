"""AArch64 machine code of a CodeImage, read back by LLVM's disassembler: functions, and the loops within them."""

from __future__ import annotations

import re
import subprocess
import tempfile
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from landbridge.executable.parts import CodeImage

_LINE = re.compile(r"\s*([0-9a-f]+):\s+(\S+)(?:\s+([^/<]*))?")
_BRANCHES = re.compile(r"b\.\w+|b|cbn?z|tbn?z")
_REGISTER_BYTES = {"q": 16, "d": 8, "s": 4, "h": 2, "b": 1, "x": 8, "w": 4}


@dataclass(frozen=True)
class Instruction:
    """One instruction: its byte offset in the image, its name, its operands as text."""

    offset: int
    name: str
    operands: str

    @property
    def target(self) -> int | None:
        """Where a branch within a function goes; None for what is none."""
        if not _BRANCHES.fullmatch(self.name):
            return None
        found = re.search(r"0x([0-9a-f]+)$", self.operands.strip())
        return int(found[1], 16) if found else None

    @property
    def multiply_adds(self) -> int:
        """How many f32 numbers it multiplies and adds; a multiplication or an addition alone is none."""
        if self.name in ("fmadd", "fmsub", "fnmadd", "fnmsub"):
            return 1
        if self.name not in ("fmla", "fmls", "fmad"):
            return 0
        arrangement = re.search(r"\.(\d+)s", self.operands)
        return int(arrangement[1]) if arrangement else 0

    @property
    def is_load(self) -> bool:
        """Whether it reads memory."""
        return self.name.startswith("ld")

    @property
    def is_store(self) -> bool:
        """Whether it writes memory."""
        return self.name.startswith("st")

    @property
    def nbytes(self) -> int:
        """Bytes that a load or store moves."""
        if not (self.is_load or self.is_store):
            return 0
        registers = self.operands.partition("[")[0]
        listed = re.findall(r"\bv\d+\.(\d*)([bhsd])", registers)
        if listed:  # ld1, ld1r, st1 ...: of a lane, of every lane the same, or whole registers
            width = {"b": 1, "h": 2, "s": 4, "d": 8}
            if self.name.endswith("r"):
                return width[listed[0][1]] * len(listed)
            return sum(width[kind] * int(lanes or 1) for lanes, kind in listed)
        return sum(_REGISTER_BYTES[kind] for kind in re.findall(r"\b([qdshbxw])\d+", registers))

    @property
    def spills(self) -> bool:
        """Whether it moves a vector register to or from the stack."""
        return bool(self.nbytes) and "[sp" in self.operands and self.operands.strip()[0] in "qdv"


@dataclass(frozen=True)
class Loop:
    """The instructions of a loop that has none inside, in order of their offsets."""

    body: Sequence[Instruction]

    @property
    def multiply_adds(self) -> int:
        """f32 numbers multiplied and added in one iteration."""
        return sum(i.multiply_adds for i in self.body)

    @property
    def fused(self) -> int:
        """Vector instructions among them that multiply and add."""
        return sum(i.multiply_adds > 0 for i in self.body)

    @property
    def is_product(self) -> bool:
        """Whether it is a loop of products: most of what it does with vectors is to multiply and add. Other loops that
        do that, too, compute functions or finish what a product gave."""
        computing = sum(not (i.is_load or i.is_store) and i.operands.startswith("v") for i in self.body)
        return self.fused > computing / 2


def functions(image: CodeImage, llvm: Path) -> dict[str, list[Instruction]]:
    """The instructions of each kernel of ``image``: of its exported function and of the one that this calls."""
    code = _disassembled(image, llvm)
    offsets = [i.offset for i in code]
    starts: dict[int, str] = {}
    for symbol, at in image.symbols.items():
        starts[at] = symbol
    called = [(at, _tail_target(code, offsets, at)) for at in starts]
    starts.update({body: starts[at] for at, body in called if body is not None and body not in starts})
    order = sorted(starts)
    found: dict[str, list[Instruction]] = {}
    for i in code:
        at = bisect_right(order, i.offset) - 1
        if at >= 0:
            found.setdefault(starts[order[at]], []).append(i)
    return found


def _tail_target(code: Sequence[Instruction], offsets: Sequence[int], start: int) -> int | None:
    """Where the function at ``start`` jumps to, or which function it calls, at its end."""
    for i in code[bisect_right(offsets, start) - 1 :]:
        if i.name in ("b", "bl"):
            found = re.search(r"0x([0-9a-f]+)$", i.operands.strip())
            return int(found[1], 16) if found else None
        if i.name in ("ret", "br"):
            return None
    return None


def innermost_loops(code: Sequence[Instruction]) -> list[Loop]:
    """The loops of a function, ranges that a branch backwards closes, that hold no other such range."""
    known = {i.offset: n for n, i in enumerate(code)}
    ranges = {(known[i.target], n) for n, i in enumerate(code) if i.target in known and known[i.target] <= n}
    inner = [r for r in ranges if not any(o != r and r[0] <= o[0] and o[1] <= r[1] for o in ranges)]
    return [Loop(code[first : last + 1]) for first, last in sorted(inner)]


def _disassembled(image: CodeImage, llvm: Path) -> list[Instruction]:
    with tempfile.TemporaryDirectory() as folder:
        raw, whole = Path(folder) / "code", Path(folder) / "code.o"
        raw.write_bytes(image.code)
        flags = ["--set-section-flags=.data=code,alloc", "-I", "binary", "-O", "elf64-littleaarch64"]
        _run(llvm / "llvm-objcopy", *flags, raw, whole)
        text = _run(llvm / "llvm-objdump", "-d", "--no-show-raw-insn", "--triple=aarch64", "--mattr=+all", whole)
    found = []
    for line in text.splitlines():
        match = _LINE.match(line)
        if match and not match[2].startswith(("<", ".")):
            found.append(Instruction(int(match[1], 16), match[2], (match[3] or "").strip()))
    return found


def _run(*command: object) -> str:
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True).stdout
