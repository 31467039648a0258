from __future__ import annotations

import pytest

from landbridge.codegen.llvm.isa import isa_of, required_flags, sve_flags
from landbridge.targets import Target
from landbridge.targets.tags import known_tags


def test_stated_features_become_cpuinfo_flags() -> None:
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
    assert pi4 < pi5 < g3 < g4
    assert "asimddp" in pi5 and "sve" in g3
    assert "asimddp" not in required_flags("aarch64", "cortex-a76", ("-dotprod",))


def test_registers_of_sve_are_counted_on_where_they_are_longer_than_neons() -> None:
    flags = required_flags("aarch64", "neoverse-v1", ())
    assert "sve" in flags
    assert sve_flags(128, flags) == flags and sve_flags(256, ("asimd",)) == ("asimd",)
    assert set(sve_flags(256, flags)) - set(flags) == {"sve256"}
    assert isa_of("aarch64", 256, flags).attributes == "vscale_range(2,2)"
    assert not isa_of("aarch64", 128, flags).attributes and not isa_of("aarch64", 256, ("asimd",)).attributes
