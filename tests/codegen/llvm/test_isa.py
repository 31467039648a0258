from __future__ import annotations

import re
import subprocess
import sys

import pytest

from landbridge.codegen.llvm.isa import isa_of, required_flags
from landbridge.instruction_sets.aarch64 import features as features_aarch64
from landbridge.instruction_sets.aarch64.cpus import sve_flags
from landbridge.instruction_sets.x86_64 import features as features_x86_64
from landbridge.targets import Target
from landbridge.targets.llvm_cpu import cpu_names
from landbridge.targets.tags import known_tags
from tests.selection.installed import package

#: Clang's names of AArch64's features that LLVM's differ from.
ARCHITECTURE = {
    "fp-armv8": "FEAT_FP",
    "neon": "FEAT_AdvSIMD",
    "fullfp16": "FEAT_FP16",
    "fp16fml": "FEAT_FHM",
    "rcpc": "FEAT_LRCPC",
    "rcpc-immo": "FEAT_LRCPC2",
    "rcpc3": "FEAT_LRCPC3",
    "complxnum": "FEAT_FCMA",
    "jsconv": "FEAT_JSCVT",
    "fptoint": "FEAT_FRINTTS",
    "altnzcv": "FEAT_FlagM2",
    "flagm": "FEAT_FlagM",
    "dotprod": "FEAT_DotProd",
}
#: Of x86-64, what no code has that was not written for it.
UNASKED = {"adx", "aes", "vaes", "pclmul", "vpclmulqdq", "sha", "sse4a"}


def clang(*arguments: str) -> str:
    package("ziglang", "boards")
    command = [sys.executable, "-m", "ziglang", "clang", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, input="")
    return "" if done.returncode else done.stdout


@pytest.mark.sample(4)
@pytest.mark.parametrize("cpu", sorted(features_aarch64.OF_CPU))
def test_features_of_aarch64_cpus_are_those_that_clang_has(cpu: str) -> None:
    printed = clang("--target=aarch64-linux-gnu", f"-mcpu={cpu}", "--print-enabled-extensions")
    on = set(re.findall(r"FEAT_\w+", printed))
    assert on, "clang knows the CPU"
    wanted = {name for name in features_aarch64.FLAGS if ARCHITECTURE.get(name, f"FEAT_{name.upper()}") in on}
    assert set(features_aarch64.OF_CPU[cpu]) == wanted


@pytest.mark.sample(4)
@pytest.mark.parametrize("cpu", sorted(set(features_x86_64.OF_CPU) - {"generic"}))
def test_features_of_x86_64_cpus_are_those_that_clang_has(cpu: str) -> None:
    printed = clang("--target=x86_64-linux-gnu", f"-march={cpu}", "-E", "-dM", "-x", "c", "-")
    on = set(re.findall(r"#define (\w+) ", printed))
    assert on, "clang knows the CPU"
    macros = {name: f"__{name.upper().replace('.', '_')}__" for name in features_x86_64.FLAGS}
    macros["cx16"] = "__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16"
    wanted = {name for name, macro in macros.items() if macro in on and name not in UNASKED}
    assert set(features_x86_64.OF_CPU[cpu]) == wanted


def test_every_cpu_that_llvm_names_is_known() -> None:
    """But for x86's that lack 64 bits, and second spellings of names."""
    assert set(cpu_names("aarch64-linux-gnu")) - set(features_aarch64.OF_CPU) == set()
    short = re.compile(r"i\d86|pentium.*|athlon(-.+)?|k6.*|c3.*|winchip.*|geode|lakemont|prescott|yonah|.*_.*")
    unknown = set(cpu_names("x86_64-linux-gnu")) - set(features_x86_64.OF_CPU)
    assert {name for name in unknown if not short.fullmatch(name)} == set()


def test_declared_features_become_cpuinfo_flags() -> None:
    assert required_flags("x86_64", "znver4", ("+avx2", "+sse4.1", "-avx512f", "+64bit", "+bmi"))[:3] == (
        "abm",
        "avx",
        "avx2",
    )
    assert "avx512f" not in required_flags("x86_64", "znver4", ("-avx512f",))
    assert required_flags("x86_64", "generic", ()) == ()


@pytest.mark.parametrize(
    ("cpu", "has", "lacks"),
    [("x86-64-v2", "sse4_2", "avx"), ("x86-64-v3", "fma", "avx512f"), ("x86-64-v4", "avx512vl", "avx512_vnni")],
)
def test_levels(cpu: str, has: str, lacks: str) -> None:
    flags = required_flags("x86_64", cpu, ())
    assert has in flags and lacks not in flags


def test_a_cpu_without_known_features_adds_nothing() -> None:
    assert required_flags("x86_64", "some-future-cpu", ("+avx",)) == ("avx",)


@pytest.mark.sample(6)
@pytest.mark.parametrize("tag", [tag for tag, form in known_tags().items() if "aarch64" in str(form.get("mtriple"))])
def test_the_cpus_of_boards_are_known_to_llvm_and_here(tag: str) -> None:
    target = Target(tag)  # raises where LLVM does not know the name
    flags = required_flags("aarch64", target.mcpu, target.mattr)
    assert {"asimd", "fp"} <= set(flags)
    assert not {"aes", "sha2", "crc32"} & set(flags), "no code has those, and boards are sold without"
    assert target.vector_registers == 32 and target.vector_bits >= 128


def test_later_versions_need_what_earlier_ones_do() -> None:
    pi4, pi5, g3, g4 = (
        set(required_flags("aarch64", cpu, ())) for cpu in ("cortex-a72", "cortex-a76", "neoverse-v1", "neoverse-v2")
    )
    assert pi4 < pi5 < g3 and pi5 < g4 and g3 - g4 == {"sha3"}
    assert "asimddp" in pi5 and "sve" in g3
    assert "asimddp" not in required_flags("aarch64", "cortex-a76", ("-dotprod",))


def test_registers_of_sve_are_counted_on_where_they_are_longer_than_neons() -> None:
    flags = required_flags("aarch64", "neoverse-v1", ())
    assert "sve" in flags
    assert sve_flags(128, flags) == flags and sve_flags(256, ("asimd",)) == ("asimd",)
    assert set(sve_flags(256, flags)) - set(flags) == {"sve256"}
    assert isa_of("aarch64", 256, flags).attributes == "vscale_range(2,2)"
    assert not isa_of("aarch64", 128, flags).attributes and not isa_of("aarch64", 256, ("asimd",)).attributes
