"""Functions of AArch64 that no compiler makes (Arm Architecture Reference Manual, C6.2: ADR, ADRP, ADD, B, RET)."""

from __future__ import annotations

import struct

from landbridge.instruction_sets.code_forms import CodeForms

_RET = 0xD65F03C0
_ADR_PREL_PG_HI21, _ADD_ABS_LO12_NC = 275, 277


def _jump_with(at: int, value: int, function: int) -> bytes:
    branch = 0x14000000 | (function - (at + 8) >> 2 & 0x3FFFFFF)  # b function
    return _load_address(at, value) + struct.pack("<I", branch)


def _address_of(at: int, target: int) -> bytes:
    adr = 0x10000000 | (target - at & 3) << 29 | (target - at >> 2 & 0x7FFFF) << 5  # adr x0, target
    return struct.pack("<II", adr, _RET)


def _address_of_data(at: int, data: int) -> bytes:
    return _load_address(at, data) + struct.pack("<I", _RET)


def _load_address(at: int, target: int) -> bytes:
    pages = (target >> 12) - (at >> 12)
    adrp = 0x90000000 | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5  # adrp x0, target
    add = 0x91000000 | (target & 0xFFF) << 10  # add x0, x0, :lo12:target
    return struct.pack("<II", adrp, add)


CODE = CodeForms(
    jump_with=_jump_with,
    address_of=_address_of,
    address_of_data=_address_of_data,
    data_relocations=((0, _ADR_PREL_PG_HI21, 0), (4, _ADD_ABS_LO12_NC, 0)),
)
