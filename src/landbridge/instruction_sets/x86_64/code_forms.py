"""Functions of x86-64 that no compiler makes (Intel, "Software Developer's Manual", volume 2: LEA, JMP, RET)."""

from __future__ import annotations

import struct

from landbridge.instruction_sets.code_forms import CodeForms

_PC32 = 2


def _jump_with(at: int, value: int, function: int) -> bytes:
    load, jump = b"\x48\x8d\x3d", b"\xe9"  # lea value(%rip), %rdi; jmp function
    after_load = at + len(load) + 4
    after_jump = after_load + len(jump) + 4
    return load + struct.pack("<i", value - after_load) + jump + struct.pack("<i", function - after_jump)


def _address_of(at: int, target: int) -> bytes:
    return b"\x48\x8d\x05" + struct.pack("<i", target - (at + 7)) + b"\xc3"  # lea target(%rip), %rax; ret


CODE = CodeForms(
    jump_with=_jump_with,
    address_of=_address_of,
    address_of_data=_address_of,
    data_relocations=((3, _PC32, -4),),
    data_offset=7,
)
