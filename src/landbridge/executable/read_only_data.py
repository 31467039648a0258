"""Data of a library outside its code, in pages that are neither written nor executed, and the function that returns its
address.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from landbridge.records import record

#: Bytes of such a function.
REFERENCE_BYTES = 16


@record(frozen=True)
class ReadOnlyData:
    """The ``content``, and the offset in the code of the function that returns its address; that code is not written
    yet.
    """

    content: bytes
    function: int


@record(frozen=True)
class DataReference:
    """The function that returns the address of data, for one instruction set.

    ``code``: without the distance. ``relocations``: place, type and addend of what a linker fills in (ELF's numbers).
    ``reaching``: the function at an address, for data at another.
    """

    code: bytes
    relocations: tuple[tuple[int, int, int], ...]
    reaching: Callable[[int, int], bytes]


def _x86_64(at: int, data: int) -> bytes:
    return b"\x48\x8d\x05" + struct.pack("<i", data - (at + 7)) + b"\xc3"  # lea data(%rip), %rax; ret


def _aarch64(at: int, data: int) -> bytes:
    pages = (data >> 12) - (at >> 12)
    adrp = 0x90000000 | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5  # adrp x0, data
    add = 0x91000000 | (data & 0xFFF) << 10  # add x0, x0, :lo12:data
    return struct.pack("<III", adrp, add, 0xD65F03C0)  # ret


#: R_X86_64_PC32; R_AARCH64_ADR_PREL_PG_HI21 and R_AARCH64_ADD_ABS_LO12_NC.
REFERENCES = {
    "x86_64": DataReference(_x86_64(0, 7), ((3, 2, -4),), _x86_64),
    "aarch64": DataReference(_aarch64(0, 0), ((0, 275, 0), (4, 277, 0)), _aarch64),
}


def with_reference(code: bytes, data: ReadOnlyData, function: bytes) -> bytes:
    """Returns ``code`` with ``function`` written at its offset."""
    return code[: data.function] + function + code[data.function + len(function) :]
