"""The parts of a relocatable ELF object that linking needs: sections, symbols, relocations.

Structures: System V ABI, generic part, chapter 4.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from landbridge.errors import CodegenError
from landbridge.records import record

SHT_PROGBITS = 1
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR = 1, 2, 4
SHN_UNDEF = 0

_SHT_SYMTAB, _SHT_RELA = 2, 4
_STB_LOCAL = 0
_ET_REL = 1


@record(frozen=True)
class ElfSection:
    """A section's header; ``offset`` and ``size`` are bytes of the file."""

    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int


@record(frozen=True)
class ElfSymbol:
    """A symbol: ``value`` counts bytes from the start of section number ``section``."""

    name: str
    is_local: bool
    section: int
    value: int


@record(frozen=True)
class ElfReference:
    """A location, in bytes from the start of section number ``section``, that gets a value which depends on
    ``symbol``.
    """

    section: int
    offset: int
    kind: int
    symbol: ElfSymbol
    addend: int


class ElfObject:
    """A relocatable little-endian 64-bit object; raises CodegenError for other bytes.

    ``machine`` is ELF's number of the instruction set.
    """

    def __init__(self, data: bytes) -> None:
        if data[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", data, 16) != (_ET_REL,):
            raise CodegenError("not a relocatable little-endian 64-bit ELF object; only those can be linked")
        self.data = data
        (self.machine,) = struct.unpack_from("<H", data, 18)
        table, entry, count, names = struct.unpack_from("<Q10xHHH", data, 40)
        raw = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * entry) for i in range(count)]
        strings = raw[names][4]
        self.sections = [
            ElfSection(_string(data, strings + r[0]), r[1], r[2], r[4], r[5], r[6], r[7], max(1, r[8])) for r in raw
        ]
        self.symbols: list[ElfSymbol] = []
        for section in self.sections:
            if section.kind == _SHT_SYMTAB:
                text = self.sections[section.link].offset
                for at in range(section.offset, section.offset + section.size, 24):
                    name, info, _, index, value, _ = struct.unpack_from("<IBBHQQ", data, at)
                    self.symbols.append(ElfSymbol(_string(data, text + name), info >> 4 == _STB_LOCAL, index, value))

    def references(self) -> Iterator[ElfReference]:
        """Yields each location that a linker fills, in the order of the file."""
        for section in self.sections:
            if section.kind == _SHT_RELA:
                for at in range(section.offset, section.offset + section.size, 24):
                    offset, info, addend = struct.unpack_from("<QQq", self.data, at)
                    yield ElfReference(section.info, offset, info & 0xFFFFFFFF, self.symbols[info >> 32], addend)

    def body(self, section: ElfSection) -> bytes:
        """Returns the bytes of ``section``."""
        return self.data[section.offset : section.offset + section.size]


def _string(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()
