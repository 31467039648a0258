"""Functions of ARMv7 that no compiler makes, in A32 code (Arm Architecture Reference Manual, ARMv7-A and ARMv7-R
edition, A8.8: ADD, B, BX, LDR).

An instruction reads its own address plus 8 as pc. Each function begins with a load of the distance from its second
instruction's pc, which is its own byte 12, to what it is to reach: ``ldr r0, [pc, #4]; add r0, pc, r0``. The distance
is its fourth word.
"""

from __future__ import annotations

import struct

from landbridge.instruction_sets.code_forms import CodeForms

_REL32 = 3
#: Where a function has the distance, which counts from there.
_DISTANCE = 12
_LOAD = struct.pack("<II", 0xE59F0004, 0xE08F0000)
_RETURN = struct.pack("<I", 0xE12FFF1E)  # bx lr


def _jump_with(at: int, value: int, function: int) -> bytes:
    branch = 0xEA000000 | (function - (at + 16) >> 2 & 0xFFFFFF)  # b function
    return _LOAD + struct.pack("<Ii", branch, value - (at + _DISTANCE))


def _address_of(at: int, target: int) -> bytes:
    return _LOAD + _RETURN + struct.pack("<i", target - (at + _DISTANCE))


CODE = CodeForms(
    jump_with=_jump_with,
    address_of=_address_of,
    address_of_data=_address_of,
    data_relocations=((_DISTANCE, _REL32, 0),),
    data_offset=_DISTANCE,
)
