"""CPU features that RISC-V code depends on: LLVM's names, and those of Linux (``isa`` of ``/proc/cpuinfo``, hwprobe).

Sources: LLVM's RISCVProcessors.td (22), with which a test compares the table; Linux,
Documentation/arch/riscv/hwprobe.rst and Documentation/devicetree/bindings/riscv/extensions.yaml.
"""

from __future__ import annotations

from collections.abc import Sequence

#: What every RV64GC processor has, and Linux distributions and their C library's calling convention presuppose.
BASELINE = ("m", "a", "f", "d", "c")
#: Bits of the shortest vector registers that the V extension allows (RISC-V "V" Extension 1.0, 18.3).
SHORTEST_BITS = 128
#: Features that say how long vector registers are at least, from the shortest on.
LENGTHS = {f"zvl{bits}b": bits for bits in (SHORTEST_BITS << n for n in range(7))}

_PLAIN = (
    "v zba zbb zbs zbkb zicond zfa zfh zfhmin zfbfmin zvfh zvfhmin zvfbfmin zvfbfwma zvbb zvkb zcb zacas zihintntl "
    "zve32x zve32f zve64x zve64f zve64d xandesperf xmipscmov xventanacondops"
)
#: LLVM feature -> flag, for the features that change which instructions ordinary code may contain: Linux has the same
#: names. ``b`` stands for three of them, and a length that V has in any case is none.
FLAGS = {name: name for name in (*BASELINE, "b", *_PLAIN.split(), *list(LENGTHS)[1:])}
#: The flags that one of them stands for.
_PARTS = {"b": ("zba", "zbb", "zbs")}

_BITS = ("zba", "zbb")
_V = ("v",)
_P400 = ("b", "zfhmin", "zihintntl")
_HALVES = ("zfh", "zfhmin", "zvfh", "zvfhmin")
_RVA23 = ("b", "v", "zicond", "zihintntl", "zfa", "zfh", "zfhmin", "zcb", "zvbb", "zvkb", "zvfh", "zvfhmin")
_BRAINS = ("zfbfmin", "zvfbfmin", "zvfbfwma")

#: CPUs by LLVM's names, with the features that they have in common besides BASELINE.
_CPUS: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        (),
        "generic generic-rv64 rocket-rv64 sifive-s21 sifive-s51 sifive-s54 sifive-s76 sifive-u54 sifive-u74 "
        "syntacore-scr3-rv64 syntacore-scr4-rv64 syntacore-scr5-rv64",
    ),
    (("xandesperf",), "andes-ax25 andes-ax45 andes-nx45"),
    (("xandesperf", *_V), "andes-ax45mpv"),
    ((*_BITS, "xmipscmov"), "mips-p8700"),
    (_BITS, "sifive-p550"),
    (_P400, "sifive-p450"),
    ((*_P400, *_V, "zvbb", "zvkb"), "sifive-p470 sifive-p670"),
    ((*_RVA23, *_BRAINS), "sifive-p870"),
    ((*_BITS, *_V, *_HALVES, "zvl256b", "zvl512b"), "sifive-x280"),
    ((*_RVA23, *_BRAINS, "zvl256b", "zvl512b", "zvl1024b"), "sifive-x390"),
    (("b", *_V, *_HALVES, "zicond", "zvl256b"), "spacemit-x60"),
    (("b", *_V, "zbkb"), "syntacore-scr7"),
    ((*_RVA23, *_BRAINS, "zvl256b"), "tt-ascalon-d8"),
    (("b", "xventanacondops"), "veyron-v1"),
    ((*_RVA23, "zbkb", "zacas"), "xiangshan-kunminghu"),
    (("b", "zbkb"), "xiangshan-nanhu"),
)

#: The features of the CPUs that are named without a list of features beside them.
OF_CPU: dict[str, tuple[str, ...]] = {name: features for features, names in _CPUS for name in names.split()}


def required(vector_bits: int, flags: Sequence[str]) -> tuple[str, ...]:
    """Returns ``flags`` with the parts of those that stand for several; vectors of any length need no more."""
    return tuple(sorted({part for flag in flags for part in _PARTS.get(flag, (flag,))}))


def vector_bits_of(features: Sequence[str] | frozenset[str]) -> int:
    """Returns the bits that vector registers have at least on a CPU with ``features``; 0 where it has none."""
    if "v" not in features:
        return 0
    return max((bits for name, bits in LENGTHS.items() if name in features), default=SHORTEST_BITS)
