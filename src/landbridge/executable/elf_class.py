"""The structures of ELF files with addresses of 64 and of 32 bits, as libraries have them.

Structures: System V ABI, generic part, chapters 4 and 5. Of tables of relocations there are two forms: entries with an
addend (RELA), and entries whose addend is at the location that they are for (REL).
"""

from __future__ import annotations

import struct

from landbridge.instruction_sets.elf import Elf
from landbridge.records import record

_RELA, _REL = 4, 9
_DT_RELA, _DT_RELASZ, _DT_RELAENT = 7, 8, 9
_DT_REL, _DT_RELSZ, _DT_RELENT = 17, 18, 19


@record(frozen=True)
class Tables:
    """The numbers of one form of relocation tables: the type of its sections and what their names begin with, and the
    tags of its address, bytes and bytes of an entry in a dynamic section.
    """

    section: int
    prefix: str
    address: int
    size: int
    entry: int


@record(frozen=True)
class LibrarySection:
    """A section: ELF's type and flags, its bytes, the sections that it refers to, its alignment, and the bytes of an
    entry of a table.
    """

    name: str
    kind: int
    flags: int
    size: int
    link: int = 0
    info: int = 0
    alignment: int = 8
    entry: int = 0


_WITH_ADDENDS = Tables(_RELA, ".rela", _DT_RELA, _DT_RELASZ, _DT_RELAENT)
_WITHOUT_ADDENDS = Tables(_REL, ".rel", _DT_REL, _DT_RELSZ, _DT_RELENT)


@record(frozen=True)
class ElfClass:
    """The structures of files for the instruction set that ``elf`` describes; sizes are in bytes.

    ``is_wide``: addresses have 64 bits.
    """

    elf: Elf

    @property
    def is_wide(self) -> bool:
        return self.elf.bits == 64

    @property
    def header_bytes(self) -> int:
        return 64 if self.is_wide else 52

    @property
    def segment_bytes(self) -> int:
        return 56 if self.is_wide else 32

    @property
    def section_bytes(self) -> int:
        return 64 if self.is_wide else 40

    @property
    def symbol_bytes(self) -> int:
        return 24 if self.is_wide else 16

    @property
    def dynamic_bytes(self) -> int:
        return 16 if self.is_wide else 8

    @property
    def relocation_bytes(self) -> int:
        words = 2 if self.elf.addends_in_place else 3
        return words * self.elf.bits // 8

    @property
    def tables(self) -> Tables:
        return _WITHOUT_ADDENDS if self.elf.addends_in_place else _WITH_ADDENDS

    def header(self, kind: int, segments: int, sections: int, names: int, sections_at: int) -> bytes:
        """Returns the header of a file of type ``kind``, whose ``segments`` follow it and whose ``sections`` have their
        headers at ``sections_at``; section ``names`` has their names.
        """
        identity = b"\x7fELF" + bytes([2 if self.is_wide else 1, 1, 1]) + bytes(9)
        form = "<HHIQQQIHHHHHH" if self.is_wide else "<HHIIIIIHHHHHH"
        segments_at, segment_bytes = (self.header_bytes, self.segment_bytes) if segments else (0, 0)
        counts = (segment_bytes, segments, self.section_bytes, sections, names)
        places = (0, segments_at, sections_at, self.elf.flags, self.header_bytes)
        return identity + struct.pack(form, kind, self.elf.machine, 1, *places, *counts)

    def segment(self, kind: int, flags: int, start: int, size: int, alignment: int) -> bytes:
        """Returns the program header of bytes of the file that are mapped at the address of their offset."""
        places = (start, start, start, size, size)
        if self.is_wide:
            return struct.pack("<IIQQQQQQ", kind, flags, *places, alignment)
        return struct.pack("<IIIIIIII", kind, *places, flags, alignment)

    def section(self, section: LibrarySection, name: int, address: int, offset: int) -> bytes:
        """Returns the header of ``section``, which lies at byte ``offset`` of the file; ``name`` is the offset of its
        name.
        """
        form = "<IIQQQQIIQQ" if self.is_wide else "<IIIIIIIIII"
        places = (section.flags, address, offset, section.size)
        rest = (section.link, section.info, section.alignment, section.entry)
        return struct.pack(form, name, section.kind, *places, *rest)

    def symbol(self, name: int, info: int, section: int, value: int) -> bytes:
        """Returns an entry of a symbol table; ``info`` is its binding and type."""
        if self.is_wide:
            return struct.pack("<IBBHQQ", name, info, 0, section, value, 0)
        return struct.pack("<IIIBBH", name, value, 0, info, 0, section)

    def relocation(self, place: int, symbol: int, kind: int, addend: int) -> bytes:
        """Returns an entry of a relocation table; ``addend`` is left out where it is at the place itself."""
        if self.is_wide:
            words = (place, symbol << 32 | kind)
            return struct.pack("<QQ", *words) if self.elf.addends_in_place else struct.pack("<QQq", *words, addend)
        words = (place, symbol << 8 | kind)
        return struct.pack("<II", *words) if self.elf.addends_in_place else struct.pack("<IIi", *words, addend)

    def dynamic(self, tag: int, value: int) -> bytes:
        """Returns an entry of a dynamic section."""
        return struct.pack("<QQ" if self.is_wide else "<II", tag, value)
