"""Descriptions that cannot be right are refused with what is wrong, and names are found by their aliases."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import cast

import pytest

import landbridge as lb
from landbridge.errors import TargetError
from landbridge.instruction_sets import registry
from landbridge.instruction_sets.aarch64.description import AARCH64
from landbridge.instruction_sets.description import InstructionSet
from landbridge.instruction_sets.elf import Elf
from landbridge.instruction_sets.x86_64.description import X86_64

_WITHOUT_GOT = {kind: each for kind, each in AARCH64.elf.relocations.items() if kind not in (286, 257)}


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        (replace(X86_64, name="x86"), "called 'x86_64' and it 'x86'"),
        (replace(X86_64, elf=replace(X86_64.elf, page=2048)), "elf.page is 2048; legal: a power of 2 from 4096"),
        (replace(X86_64, elf=replace(X86_64.elf, page=12288)), "elf.page is 12288"),
        (replace(X86_64, cpus=replace(X86_64.cpus, oldest="x86-64-v0")), "cpus.oldest is 'x86-64-v0'"),
        (replace(X86_64, code=replace(X86_64.code, data_relocations=((3, 77, 0),))), "relocation type 77 is used"),
        (
            replace(X86_64, elf=cast(Elf, None)),
            "'page'; its facts have other types",
        ),
        (3, "is int, and no InstructionSet"),
    ],
)
def test_what_cannot_be_right(found: object, wrong: str) -> None:
    with pytest.raises(TargetError, match=f"instruction set 'x86_64' of a:b.*{wrong}"):
        registry._checked("x86_64", found, "a:b")


def test_every_relocation_that_is_used_is_described() -> None:
    lacking = replace(AARCH64, elf=replace(AARCH64.elf, relocations=_WITHOUT_GOT))
    with pytest.raises(TargetError, match=r"type 286 is used.*type 257 is used.*type 312 reaches its slot by type 286"):
        registry._checked("aarch64", lacking, "a:b")


@pytest.mark.parametrize("found", [X86_64, AARCH64], ids=lambda each: each.name)
def test_those_of_this_package(found: InstructionSet) -> None:
    assert registry._checked(found.name, found, "here") is found
    assert registry.instruction_set(found.name) is found
    assert [registry.canonical_name(name) for name in (found.name, *found.aliases)] == [found.name] * 2
    assert registry.is_known(found.name) and not registry.is_known(found.aliases[0])
    text = found.runtime.text()
    for name in ("float_control", "set_float_control", "pause", "spent"):
        assert f'@"landbridge.{name}"' in text
    assert "lb_name_check_cpu" in found.processor.check_source()


def test_one_that_does_not_load_ends_no_search_among_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The errors for other names list those that do."""
    points = {"half": [EntryPoint("half", "os:sep", "landbridge.instruction_sets")]}
    monkeypatch.setattr(registry.INSTRUCTION_SETS, "_installed", points)
    assert "half" in registry.names() and "half" not in [each.name for each in registry.usable()]
    with pytest.raises(TargetError, match=r"LLVM knows no instruction set 'zoid'.*x86_64-linux-gnu"):
        lb.Target("llvm -mtriple=zoid-linux-gnu -mcpu=generic")
    with pytest.raises(TargetError, match="LLVM knows no CPU 'cortex-a99' for x86_64"):
        lb.Target("llvm -mtriple=x86_64-linux-gnu -mcpu=cortex-a99")


def test_a_name_that_is_none() -> None:
    assert registry.canonical_name("sparc64") == "sparc64" and not registry.is_known("sparc64")
    with pytest.raises(TargetError, match=r"unknown instruction set 'x86_46', did you mean 'x86_64'|x86_46.*x86_64"):
        registry.instruction_set("x86_46")
