"""Relocations of x86-64. Numbers: System V ABI, AMD64 supplement, version 1.0, chapter 4."""

from __future__ import annotations

import struct

from landbridge.instruction_sets.elf import Elf, Relocation, Through

#: ``jmp *slot(%rip)``; the distance counts from the end of the instruction.
_STUB = b"\xff\x25\0\0\0\0\xcc\xcc"


def _word(code: bytearray, location: int, target: int) -> None:
    struct.pack_into("<Q", code, location, target)


def _distance(code: bytearray, location: int, target: int) -> None:
    struct.pack_into("<i", code, location, target - location)


def _long_distance(code: bytearray, location: int, target: int) -> None:
    struct.pack_into("<q", code, location, target - location)


ELF = Elf(
    machine=62,
    page=4096,
    absolute=1,
    relative=8,
    relocations={
        1: Relocation(Through.LOADER, _word),  # 64
        2: Relocation(Through.STUB, _distance),  # PC32
        4: Relocation(Through.STUB, _distance),  # PLT32
        9: Relocation(Through.SLOT, _distance, 2),  # GOTPCREL
        24: Relocation(Through.NOTHING, _long_distance),  # PC64
        41: Relocation(Through.SLOT, _distance, 2),  # GOTPCRELX
        42: Relocation(Through.SLOT, _distance, 2),  # REX_GOTPCRELX
    },
    stub=_STUB,
    stub_references=((2, 2, -4),),
)
