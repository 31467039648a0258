"""Relocations of ARMv7 in A32 code, whose addends are in the instructions.

Numbers and encodings: ELF for the Arm Architecture, 2023Q3, chapter 5.6; Arm Architecture Reference Manual, ARMv7-A and
ARMv7-R edition, A8.8 (ADD, B, BL, LDR, MOVT, MOVW). An address is that of the instruction plus 8 where it is read.
"""

from __future__ import annotations

import struct

from landbridge.errors import CodegenError
from landbridge.instruction_sets.elf import Elf, Relocation, Through

_ABS32, _REL32, _RELATIVE, _CALL, _JUMP24, _MOVW_PREL_NC, _MOVT_PREL, _GOT_PREL = 2, 3, 23, 28, 29, 45, 46, 96
#: ``ldr ip, [pc, #4]; add ip, pc, ip; ldr pc, [ip]``, and the distance from the second instruction's pc to the slot.
_STUB = struct.pack("<IIII", 0xE59FC004, 0xE08FC00C, 0xE59CF000, 0)


#: Of a file's header: version 5 of the EABI, floats passed in registers (ELF for the Arm Architecture, 5.2).
_FLAGS = 0x05000400
#: By which linkers compare objects (Addenda to the ABI for the Arm Architecture, 2023Q3, chapter 3): architecture v7,
#: profile A, A32 instructions, VFPv3, Advanced SIMD, floats as IEEE has them, 8-byte alignment needed and preserved,
#: floats passed in registers.
_ATTRIBUTES = ((6, 10), (7, ord("A")), (8, 1), (10, 3), (12, 1), (23, 3), (24, 1), (25, 1), (28, 1))


def _attributes() -> bytes:
    pairs = bytes(number for pair in _ATTRIBUTES for number in pair)
    of_file = b"\x01" + struct.pack("<I", 5 + len(pairs)) + pairs
    vendor = b"aeabi\0" + of_file
    return b"A" + struct.pack("<I", 4 + len(vendor)) + vendor


def _read_word(code: bytes | bytearray, location: int) -> int:
    return int(struct.unpack_from("<i", code, location)[0])


def _write_word(code: bytearray, location: int, target: int) -> None:
    struct.pack_into("<i", code, location, target - location)


def _write_address(code: bytearray, location: int, target: int) -> None:
    struct.pack_into("<I", code, location, target)


def _write_word_addend(code: bytearray, location: int, addend: int) -> None:
    struct.pack_into("<i", code, location, addend)


def _write_branch_addend(code: bytearray, location: int, addend: int) -> None:
    _write_branch(code, location, location + addend)


def _read_branch(code: bytes | bytearray, location: int) -> int:
    return _signed(_read_word(code, location) & 0xFFFFFF, 24) << 2


def _write_branch(code: bytearray, location: int, target: int) -> None:
    distance = target - location
    if distance % 4 or not -(1 << 25) <= distance < 1 << 25:
        raise CodegenError(f"a branch at byte {location} of the image does not reach {target}: 32 MiB are the most")
    _insert(code, location, 0xFF000000, distance >> 2 & 0xFFFFFF)


def _read_half(code: bytes | bytearray, location: int) -> int:
    word = _read_word(code, location)
    return _signed(word >> 4 & 0xF000 | word & 0xFFF, 16)


def _write_low_half(code: bytearray, location: int, target: int) -> None:
    _write_half(code, location, target - location)


def _write_high_half(code: bytearray, location: int, target: int) -> None:
    _write_half(code, location, target - location >> 16)


def _write_half(code: bytearray, location: int, value: int) -> None:
    _insert(code, location, 0xFFF0F000, (value & 0xF000) << 4 | value & 0xFFF)


def _write_half_addend(code: bytearray, location: int, addend: int) -> None:
    if not -(1 << 15) <= addend < 1 << 15:
        raise CodegenError(f"the addend {addend} at byte {location} of the image does not fit: it has 16 bits")
    _write_half(code, location, addend)


def _signed(value: int, bits: int) -> int:
    return value - ((value >> bits - 1) << bits)


def _insert(code: bytearray, location: int, opcode_mask: int, value: int) -> None:
    (word,) = struct.unpack_from("<I", code, location)
    struct.pack_into("<I", code, location, word & opcode_mask | value)


ELF = Elf(
    machine=40,
    page=65536,  # as linkers have it: systems of 64 bits run such programs on pages of any size
    absolute=_ABS32,
    relative=_RELATIVE,
    relocations={
        _ABS32: Relocation(Through.LOADER, _write_address, read=_read_word, write_addend=_write_word_addend),
        _REL32: Relocation(Through.NOTHING, _write_word, read=_read_word, write_addend=_write_word_addend),
        _CALL: Relocation(Through.STUB, _write_branch, read=_read_branch, write_addend=_write_branch_addend),
        _JUMP24: Relocation(Through.STUB, _write_branch, read=_read_branch, write_addend=_write_branch_addend),
        _MOVW_PREL_NC: Relocation(Through.NOTHING, _write_low_half, read=_read_half, write_addend=_write_half_addend),
        _MOVT_PREL: Relocation(Through.NOTHING, _write_high_half, read=_read_half, write_addend=_write_half_addend),
        _GOT_PREL: Relocation(Through.SLOT, _write_word, _REL32, read=_read_word, write_addend=_write_word_addend),
    },
    stub=_STUB,
    stub_references=((12, _REL32, 0),),
    bits=32,
    libraries=("libgcc_s.so.1",),  # divisions of 64 bits
    addends_in_place=True,
    flags=_FLAGS,
    attributes_name=".ARM.attributes",
    attributes=_attributes(),
    code_symbol="$a",
)
