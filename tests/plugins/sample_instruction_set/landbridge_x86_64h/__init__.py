"""x86-64 from Haswell on, as triples of LLVM call it; with pages of 16 KiB and a pause of its own."""

from __future__ import annotations

from dataclasses import replace

from landbridge.instruction_sets.runtime_source import RuntimeSource
from landbridge.instruction_sets.x86_64.description import X86_64

X86_64H = replace(
    X86_64,
    name="x86_64h",
    aliases=("haswell",),
    elf=replace(X86_64.elf, page=16384),
    c_language=replace(X86_64.c_language, macro="__x86_64h__"),
    runtime=RuntimeSource(__package__, futex=202, spin=50_000, keep=0x1F80, flush=0x9FC0, unset=0),
)
