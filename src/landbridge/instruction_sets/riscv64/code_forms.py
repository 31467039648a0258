"""Functions of RISC-V that no compiler makes (RISC-V Instruction Set Manual, volume I: AUIPC, ADDI, JALR)."""

from __future__ import annotations

import struct

from landbridge.instruction_sets.code_forms import CodeForms
from landbridge.instruction_sets.riscv64.relocations import PCREL_HI20, PCREL_LO12_I, high_of

_RET = 0x00008067
_A0, _T1 = 10, 6


def _jump_with(at: int, value: int, function: int) -> bytes:
    distance = function - (at + 8)
    jump = _T1 << 15 | 0x67 | (distance & 0xFFF) << 20  # jalr zero, low(t1)
    return _load_address(at, value) + struct.pack("<II", _auipc(_T1, distance), jump)


def _address_of(at: int, target: int) -> bytes:
    return _load_address(at, target) + struct.pack("<I", _RET)


def _load_address(at: int, target: int) -> bytes:
    distance = target - at
    add = _A0 << 15 | _A0 << 7 | 0x13 | (distance & 0xFFF) << 20  # addi a0, a0, low
    return struct.pack("<II", _auipc(_A0, distance), add)


def _auipc(register: int, distance: int) -> int:
    return high_of(distance) << 12 & 0xFFFFF000 | register << 7 | 0x17


CODE = CodeForms(
    jump_with=_jump_with,
    address_of=_address_of,
    address_of_data=_address_of,
    data_relocations=((0, PCREL_HI20, 0), (4, PCREL_LO12_I, 0)),
)
