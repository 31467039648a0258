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

_SHT_SYMTAB, _SHT_RELA, _SHT_REL = 2, 4, 9
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
    ``symbol``. ``addend``: None where it is in the bytes at that location.
    """

    section: int
    offset: int
    kind: int
    symbol: ElfSymbol
    addend: int | None


@record(frozen=True)
class _Layout:
    """The structures of one class of objects, and how many bits of a relocation's info are its type."""

    header: str
    section: struct.Struct
    symbol: struct.Struct
    rel: struct.Struct
    rela: struct.Struct
    type_bits: int


_32 = _Layout(
    header="<32xI10xHHH",
    section=struct.Struct("<10I"),
    symbol=struct.Struct("<IIIBBH"),
    rel=struct.Struct("<II"),
    rela=struct.Struct("<IIi"),
    type_bits=8,
)
_64 = _Layout(
    header="<40xQ10xHHH",
    section=struct.Struct("<IIQQQQIIQQ"),
    symbol=struct.Struct("<IBBHQQ"),
    rel=struct.Struct("<QQ"),
    rela=struct.Struct("<QQq"),
    type_bits=32,
)
#: By the class in byte 4: addresses of 32 and of 64 bits.
_LAYOUTS = {1: _32, 2: _64}


class ElfObject:
    """A relocatable little-endian object; raises CodegenError for other bytes.

    ``machine`` is ELF's number of the instruction set.
    """

    def __init__(self, data: bytes) -> None:
        layout = _LAYOUTS.get(data[4]) if data[:4] == b"\x7fELF" and data[5:6] == b"\x01" else None
        if layout is None or struct.unpack_from("<H", data, 16) != (_ET_REL,):
            raise CodegenError("not a relocatable little-endian ELF object; only those can be linked")
        self.data = data
        #: Of an address.
        self.bits = 64 if layout is _64 else 32
        self._layout = layout
        (self.machine,) = struct.unpack_from("<H", data, 18)
        table, entry, count, names = struct.unpack_from(layout.header, data)
        raw = [layout.section.unpack_from(data, table + i * entry) for i in range(count)]
        strings = raw[names][4]
        self.sections = [
            ElfSection(_string(data, strings + r[0]), r[1], r[2], r[4], r[5], r[6], r[7], max(1, r[8])) for r in raw
        ]
        self.symbols: list[ElfSymbol] = []
        for section in self.sections:
            if section.kind == _SHT_SYMTAB:
                text = self.sections[section.link].offset
                self.symbols += [self._symbol(text, at) for at in self._entries(section, layout.symbol)]

    def references(self) -> Iterator[ElfReference]:
        """Yields each location that a linker fills, in the order of the file."""
        shift = self._layout.type_bits
        for section in self.sections:
            if section.kind not in (_SHT_REL, _SHT_RELA):
                continue
            form = self._layout.rela if section.kind == _SHT_RELA else self._layout.rel
            for at in self._entries(section, form):
                offset, info, *addend = form.unpack_from(self.data, at)
                symbol = self.symbols[info >> shift]
                kind = info & ((1 << shift) - 1)
                yield ElfReference(section.info, offset, kind, symbol, addend[0] if addend else None)

    def _symbol(self, text: int, at: int) -> ElfSymbol:
        found = self._layout.symbol.unpack_from(self.data, at)
        # Objects of 32 bits have a symbol's value and size before the other fields.
        name, value, _, info, _, index = found if self._layout is _32 else (found[0], *found[4:], *found[1:4])
        return ElfSymbol(_string(self.data, text + name), info >> 4 == _STB_LOCAL, index, value)

    @staticmethod
    def _entries(section: ElfSection, form: struct.Struct) -> range:
        return range(section.offset, section.offset + section.size, form.size)

    def body(self, section: ElfSection) -> bytes:
        """Returns the bytes of ``section``."""
        return self.data[section.offset : section.offset + section.size]


def _string(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()
