"""Features of RISC-V CPUs are those of LLVM, and processors are asked for each of them."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from landbridge.codegen.llvm.image import machine_of
from landbridge.codegen.llvm.isa import required_flags
from landbridge.errors import CodegenError, TargetError
from landbridge.instruction_sets.processor import from_cpuinfo
from landbridge.instruction_sets.registry import instruction_set
from landbridge.instruction_sets.riscv64.c_language import C_LANGUAGE
from landbridge.instruction_sets.riscv64.description import RISCV64
from landbridge.instruction_sets.riscv64.features import BASELINE, FLAGS, LENGTHS, OF_CPU, required
from landbridge.instruction_sets.riscv64.processor import HWPROBE
from landbridge.passes.lower.prims import vector_unit_of
from landbridge.targets.llvm_cpu import cpu_names
from landbridge.targets.target import Target

TRIPLE = "riscv64-linux-gnu"
#: Prints the extensions that LLVM writes into objects for each CPU.
_ATTRIBUTES = """
import sys
import llvmlite.binding as llvm
llvm.initialize_all_targets(); llvm.initialize_all_asmprinters()
for name in sys.argv[1:]:
    machine = llvm.Target.from_triple("riscv64-linux-gnu").create_target_machine(cpu=name)
    module = llvm.parse_assembly("define void @f() { ret void }")
    module.triple = "riscv64-linux-gnu"
    print(name, machine.emit_assembly(module).partition('attribute\\t5, "')[2].partition('"')[0])
"""
#: What is for vectors, and not of one that has them all.
_OF_V = {"zve32x", "zve32f", "zve64x", "zve64f", "zve64d"}


def test_features_of_each_cpu_are_those_that_llvm_has() -> None:
    command = [sys.executable, "-c", _ATTRIBUTES, *OF_CPU]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(printed) == len(OF_CPU) > 20
    for line in printed:
        name, text = line.split()
        on = {re.sub(r"\d+p\d+$", "", each) for each in text.removeprefix("rv64").split("_")}
        wanted = {flag for flag in on & set(FLAGS) if flag != "b"} - _OF_V - {"zvl128b"}
        assert set(required(0, OF_CPU[name])) - set(BASELINE) == wanted - set(BASELINE), name


def test_every_cpu_of_64_bits_that_llvm_names_is_known() -> None:
    short = re.compile(
        r"andes-(45-series|a25|a45|n45)|generic(-ooo|-rv32)|rocket|.*-rv32|rp2350.*|sifive-(7-series|e\d+)|.*scr1.*"
    )
    unknown = set(cpu_names(TRIPLE)) - set(OF_CPU)
    assert {name for name in unknown if not short.fullmatch(name)} == set()


def test_each_flag_can_be_found_on_a_processor() -> None:
    """By HWCAP, riscv_hwprobe, the length of registers, or, what makers added, in ``/proc/cpuinfo``."""
    asked = {*BASELINE, "v", "b", *HWPROBE, *LENGTHS}
    assert {flag for flag in FLAGS.values() if not flag.startswith("x")} <= asked
    bits = {
        name: HWPROBE.index(name) for name in ("v", "zba", "zvbb", "zfh", "zvfh", "zfa", "zicond", "zve64d", "zawrs")
    }
    # Linux, arch/riscv/include/uapi/asm/hwprobe.h
    assert bits == {
        "v": 2,
        "zba": 3,
        "zvbb": 17,
        "zfh": 27,
        "zvfh": 30,
        "zfa": 32,
        "zicond": 35,
        "zve64d": 41,
        "zawrs": 48,
    }


@pytest.mark.parametrize(
    ("features", "flags"),
    [
        ((), set()),
        (("+v",), {"v"}),
        (("+v", "+zvl128b"), {"v"}),
        (("+v", "+zvl256b"), {"v", "zvl256b"}),
        (("+b", "+zvfh"), {"zba", "zbb", "zbs", "zvfh"}),
    ],
)
def test_declared_features_become_flags(features: tuple[str, ...], flags: set[str]) -> None:
    assert set(required(0, required_flags("riscv64", "generic", features))) == {*BASELINE, *flags}


@pytest.mark.parametrize(
    ("options", "bits", "registers"),
    [
        ("-mcpu=generic", 64, 16),
        ("-mcpu=sifive-u74", 64, 16),
        ("-mcpu=generic -mattr=+v", 256, 16),
        ("-mcpu=generic -mattr=+v,+zvl256b", 512, 16),
        ("-mcpu=spacemit-x60", 512, 16),
        ("-mcpu=spacemit-x60 -mattr=-v", 64, 16),
        ("-mcpu=sifive-x280", 512, 32),
    ],
)
def test_vector_registers_follow_from_features(options: str, bits: int, registers: int) -> None:
    target = Target(f"llvm -mtriple={TRIPLE} {options}")
    assert (target.vector_bits, target.vector_registers) == (bits, registers)


def test_what_every_linux_needs_stays_on() -> None:
    assert machine_of(Target(f"llvm -mtriple={TRIPLE} -mcpu=generic -mattr=+v")).features == "+m,+a,+f,+d,+c,+v"
    with pytest.raises(CodegenError, match=r"-mattr=-d: programs of Linux on riscv64 need m, a, f, d, c; leave it out"):
        machine_of(Target(f"llvm -mtriple={TRIPLE} -mcpu=generic -mattr=-d"))


@pytest.mark.parametrize("triple", ["aarch64_be-linux-gnu", "powerpc64-linux-gnu", "s390x-linux-gnu"])
def test_no_code_is_made_for_big_endian_cpus(triple: str) -> None:
    with pytest.raises(TargetError, match=f"CPUs of -mtriple={triple} are big-endian, .*or riscv64-linux-gnu"):
        Target(f"llvm -mtriple={triple} -mcpu=generic")


def test_c_compilers_say_what_they_make_code_for() -> None:
    macros = {"__riscv": "1", "__riscv_m": "2000000", "__riscv_v": "1000000", "__riscv_v_min_vlen": "256"}
    assert set(C_LANGUAGE.features(macros)) == {"m", "v", "zvl256b"}
    assert C_LANGUAGE.vectors(macros).bits == 512 and C_LANGUAGE.vectors({}).registers == 16


def test_values_of_the_check_in_c() -> None:
    values = RISCV64.processor.check_values(("a", "c", "v", "zba", "zvl256b"))
    assert values == {"LB_HWCAP": f"{1 | 1 << 2 | 1 << 21}ul", "LB_HWPROBE": str(1 << 3), "LB_VECTOR_BYTES": "32"}
    assert RISCV64.processor.check_values(("a",))["LB_VECTOR_BYTES"] == "0"
    assert instruction_set("riscv64") is RISCV64 and from_cpuinfo()


def test_sums_of_products_of_two_vectors_take_two_registers() -> None:
    """Windows of one channel each, whose factors are both vectors, get tiles of half as many sums; products do not."""
    assert RISCV64.schedules.sums_in_factors
    unit = vector_unit_of(Target(f"llvm -mtriple={TRIPLE} -mcpu=generic -mattr=+v"))
    assert unit.sums_in_factors and not vector_unit_of(Target("raspberry-pi-4")).sums_in_factors


def test_iterations_of_short_sums_are_paired() -> None:
    """VSETVLI and the loop's control are a seventh of the instructions of a tile's iteration."""
    unit = vector_unit_of(Target(f"llvm -mtriple={TRIPLE} -mcpu=generic -mattr=+v"))
    assert unit.unrolled == 2 and vector_unit_of(Target("raspberry-pi-4")).unrolled == 1
