from __future__ import annotations

import pytest

from landbridge.codegen.llvm.isa import required_flags


def test_stated_features_become_cpuinfo_flags() -> None:
    assert required_flags("znver4", ("+avx2", "+sse4.1", "-avx512f", "+64bit", "+bmi"))[:3] == (
        "abm",
        "avx",
        "avx2",
    )
    assert "avx512f" not in required_flags("znver4", ("-avx512f",))
    assert required_flags("generic", ()) == ()


@pytest.mark.parametrize(
    ("cpu", "has", "lacks"),
    [("x86-64-v2", "sse4_2", "avx"), ("x86-64-v3", "fma", "avx512f"), ("x86-64-v4", "avx512vl", "avx512_vnni")],
)
def test_levels(cpu: str, has: str, lacks: str) -> None:
    flags = required_flags(cpu, ())
    assert has in flags and lacks not in flags


def test_a_cpu_without_known_features_adds_nothing() -> None:
    assert required_flags("some-future-cpu", ("+avx",)) == ("avx",)
