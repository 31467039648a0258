"""Relocations of RISC-V, position-independent code.

Numbers and encodings: RISC-V ELF psABI 1.0, chapter 8.4; RISC-V Instruction Set Manual, volume I. An address is made by
two instructions: one adds the upper 20 bits of a distance to its own address, another the lower 12, which are signed.
The relocation of the second names the first by a label. Relaxation, by which linkers shorten code, is not done.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from landbridge.errors import CodegenError
from landbridge.instruction_sets.elf import Elf, Relocation, Through

PCREL_HI20, PCREL_LO12_I = 23, 24
_RELATIVE = 3
#: ``auipc t3, slot; ld t3, slot(t3); jr t3; nop``: t3 is what the ABI leaves to such stubs.
_STUB = struct.pack("<IIII", 0x00000E17, 0x000E3E03, 0x000E0067, 0x00000013)

#: For each bit of an immediate from the lowest that is stored on: its bit of the instruction.
_I = tuple(range(20, 32))
_S = (*range(7, 12), *range(25, 32))
_B = (*range(8, 12), *range(25, 31), 7, 31)  # from bit 1 on
_J = (*range(21, 31), 20, *range(12, 20), 31)  # from bit 1 on
_CB = (3, 4, 10, 11, 2, 5, 6, 12)  # from bit 1 on
_CJ = (3, 4, 5, 11, 2, 7, 6, 9, 10, 8, 12)  # from bit 1 on


def high_of(distance: int) -> int:
    """Returns the upper 20 bits of ``distance``, so that the lower 12 are signed."""
    return distance + 0x800 >> 12


def _high(code: bytearray, location: int, target: int) -> None:
    high = high_of(target - location)
    if not -(1 << 19) <= high < 1 << 19:
        raise CodegenError(f"a reference at byte {location} of the image does not reach {target}: 2 GiB are the most")
    (word,) = struct.unpack_from("<I", code, location)
    struct.pack_into("<I", code, location, word & 0xFFF | (high & 0xFFFFF) << 12)


def _low(places: Sequence[int]) -> Callable[[bytearray, int, int], None]:
    """Returns a writer of the lower 12 bits of a distance."""

    def write(code: bytearray, location: int, target: int) -> None:
        _scatter(code, location, target - location, places, "<I")

    return write


def _call(code: bytearray, location: int, target: int) -> None:
    """Writes the distance into a pair of AUIPC and JALR."""
    _high(code, location, target)
    _scatter(code, location + 4, target - location, _I, "<I")


def _branch(places: Sequence[int], form: str = "<I") -> Callable[[bytearray, int, int], None]:
    """Returns a writer of a signed distance in units of two bytes."""

    def write(code: bytearray, location: int, target: int) -> None:
        distance = target - location
        if distance % 2 or not -(1 << len(places)) <= distance < 1 << len(places):
            most = 1 << len(places)
            raise CodegenError(
                f"a branch at byte {location} of the image does not reach {target}: {most} bytes are the most"
            )
        _scatter(code, location, distance >> 1, places, form)

    return write


def _scatter(code: bytearray, location: int, value: int, places: Sequence[int], form: str) -> None:
    (word,) = struct.unpack_from(form, code, location)
    for bit, place in enumerate(places):
        word = word & ~(1 << place) | (value >> bit & 1) << place
    struct.pack_into(form, code, location, word)


def _distance(form: str) -> Callable[[bytearray, int, int], None]:
    """Returns a writer of a signed distance in data."""

    def write(code: bytearray, location: int, target: int) -> None:
        try:
            struct.pack_into(form, code, location, target - location)
        except struct.error as error:
            raise CodegenError(f"a reference at byte {location} of the image does not reach {target}") from error

    return write


def _sum(form: str, sign: int) -> Callable[[bytearray, int, int], None]:
    """Returns a writer that adds an image offset to data, or subtracts it; two of them make a distance."""
    mask = (1 << 8 * struct.calcsize(form)) - 1

    def write(code: bytearray, location: int, target: int) -> None:
        (present,) = struct.unpack_from(form, code, location)
        struct.pack_into(form, code, location, present + sign * target & mask)

    return write


def _word(code: bytearray, location: int, target: int) -> None:
    struct.pack_into("<Q", code, location, target)


def _nothing(code: bytearray, location: int, target: int) -> None:
    """Writes nothing: a hint to linkers that shorten code."""


_SUMS = {
    33 + 4 * subtracts + n: Relocation(Through.NOTHING, _sum(form, -1 if subtracts else 1))
    for subtracts in (False, True)
    for n, form in enumerate(("<B", "<H", "<I", "<Q"))
}

ELF = Elf(
    machine=243,
    page=4096,
    absolute=2,
    relative=_RELATIVE,
    flags=5,  # compressed instructions, and parameters in float registers of 64 bits
    relocations={
        2: Relocation(Through.LOADER, _word),  # 64
        16: Relocation(Through.NOTHING, _branch(_B)),  # BRANCH
        17: Relocation(Through.NOTHING, _branch(_J)),  # JAL
        18: Relocation(Through.STUB, _call),  # CALL
        19: Relocation(Through.STUB, _call),  # CALL_PLT
        20: Relocation(Through.SLOT, _high, PCREL_HI20),  # GOT_HI20
        PCREL_HI20: Relocation(Through.NOTHING, _high),
        PCREL_LO12_I: Relocation(Through.OTHER_HALF, _low(_I)),
        25: Relocation(Through.OTHER_HALF, _low(_S)),  # PCREL_LO12_S
        **_SUMS,  # ADD8 to ADD64, SUB8 to SUB64
        43: Relocation(Through.NO_SYMBOL, _nothing),  # ALIGN: bytes that a linker may remove, which can be executed
        44: Relocation(Through.NOTHING, _branch(_CB, "<H")),  # RVC_BRANCH
        45: Relocation(Through.NOTHING, _branch(_CJ, "<H")),  # RVC_JUMP
        51: Relocation(Through.NO_SYMBOL, _nothing),  # RELAX
        57: Relocation(Through.NOTHING, _distance("<i")),  # 32_PCREL
    },
    stub=_STUB,
    stub_references=((0, PCREL_HI20, 0), (4, PCREL_LO12_I, 0)),
)
