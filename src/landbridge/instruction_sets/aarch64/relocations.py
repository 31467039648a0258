"""Relocations of AArch64, small code model.

Numbers and encodings: ELF for the Arm 64-bit Architecture, 2023Q3, chapter 5.7; Arm Architecture Reference Manual,
C6.2 (ADR, ADRP, ADD, B, B.cond, BL, BR, LDR, TBZ).
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from landbridge.errors import CodegenError
from landbridge.instruction_sets.elf import Elf, Relocation, Through

#: ``adrp x16, slot; ldr x16, [x16, slot]; br x16``: the register that the ABI leaves to such stubs.
#: ``brk #1`` fills it up.
_STUB = struct.pack("<IIII", 0x90000010, 0xF9400210, 0xD61F0200, 0xD4200020)


def _fits(value: int, bits: int) -> bool:
    return -(1 << bits - 1) <= value < 1 << bits - 1


def _data(form: str, bits: int) -> Callable[[bytearray, int, int], None]:
    """Returns a writer of a signed distance in ``bits`` bits of data."""

    def write(code: bytearray, location: int, target: int) -> None:
        struct.pack_into(form, code, location, _reaching(target - location, bits, location))

    return write


def _word(code: bytearray, location: int, target: int) -> None:
    struct.pack_into("<Q", code, location, target)


def _branch(bits: int, shift: int) -> Callable[[bytearray, int, int], None]:
    """Returns a writer of a distance in instructions, ``bits`` bits from bit ``shift`` of the instruction on."""

    def write(code: bytearray, location: int, target: int) -> None:
        distance = target - location
        if distance % 4:
            raise CodegenError(f"a branch at byte {location} of the image goes to {target}, which is no instruction")
        _insert(code, location, _reaching(distance >> 2, bits, location), bits, shift)

    return write


def _page(code: bytearray, location: int, target: int) -> None:
    """Writes the distance between pages of 4096 bytes in the form of ADRP: two low bits at 29, the others at 5."""
    _address(code, location, _reaching((target >> 12) - (location >> 12), 21, location))


def _relative_21(code: bytearray, location: int, target: int) -> None:
    """Writes the distance in bytes, in the form of ADR."""
    _address(code, location, _reaching(target - location, 21, location))


def _address(code: bytearray, location: int, value: int) -> None:
    _insert(code, location, value & 3, 2, 29)
    _insert(code, location, value >> 2, 19, 5)


def _low(scale: int) -> Callable[[bytearray, int, int], None]:
    """Returns a writer of the low 12 bits of an address, in units of ``1 << scale`` bytes."""

    def write(code: bytearray, location: int, target: int) -> None:
        low = target & 0xFFF
        if low & ((1 << scale) - 1):
            raise CodegenError(f"what {1 << scale} bytes are loaded from stands at image offset {target}, not aligned")
        _insert(code, location, low >> scale, 12, 10)

    return write


def _reaching(value: int, bits: int, location: int) -> int:
    if not _fits(value, bits):
        raise CodegenError(f"a reference at byte {location} of the image does not reach: {value} is over {bits} bits")
    return value


def _insert(code: bytearray, location: int, value: int, bits: int, shift: int) -> None:
    (word,) = struct.unpack_from("<I", code, location)
    mask = (1 << bits) - 1
    struct.pack_into("<I", code, location, word & ~(mask << shift) | (value & mask) << shift)


ELF = Elf(
    machine=183,
    page=65536,
    absolute=257,
    relative=1027,
    relocations={
        257: Relocation(Through.LOADER, _word),  # ABS64
        260: Relocation(Through.NOTHING, _data("<q", 64)),  # PREL64
        261: Relocation(Through.NOTHING, _data("<i", 32)),  # PREL32
        262: Relocation(Through.NOTHING, _data("<h", 16)),  # PREL16
        273: Relocation(Through.NOTHING, _branch(19, 5)),  # LD_PREL_LO19
        274: Relocation(Through.NOTHING, _relative_21),  # ADR_PREL_LO21
        275: Relocation(Through.NOTHING, _page),  # ADR_PREL_PG_HI21
        276: Relocation(Through.NOTHING, _page),  # ADR_PREL_PG_HI21_NC
        277: Relocation(Through.NOTHING, _low(0)),  # ADD_ABS_LO12_NC
        278: Relocation(Through.NOTHING, _low(0)),  # LDST8_ABS_LO12_NC
        279: Relocation(Through.NOTHING, _branch(14, 5)),  # TSTBR14
        280: Relocation(Through.NOTHING, _branch(19, 5)),  # CONDBR19
        282: Relocation(Through.STUB, _branch(26, 0)),  # JUMP26
        283: Relocation(Through.STUB, _branch(26, 0)),  # CALL26
        284: Relocation(Through.NOTHING, _low(1)),  # LDST16_ABS_LO12_NC
        285: Relocation(Through.NOTHING, _low(2)),  # LDST32_ABS_LO12_NC
        286: Relocation(Through.NOTHING, _low(3)),  # LDST64_ABS_LO12_NC
        299: Relocation(Through.NOTHING, _low(4)),  # LDST128_ABS_LO12_NC
        311: Relocation(Through.SLOT, _page, 275),  # ADR_GOT_PAGE
        312: Relocation(Through.SLOT, _low(3), 286),  # LD64_GOT_LO12_NC
    },
    stub=_STUB,
    stub_references=((0, 275, 0), (4, 286, 0)),
)
