"""Writes a code image as an ELF shared library, without a linker.

The image is complete except for its slots, which become dynamic relocations; the file adds a dynamic section, a symbol
table and a hash table. Structures: System V ABI, generic part, chapter 5, and its AMD64 supplement; ELF for the Arm
Architecture and for the Arm 64-bit Architecture, 2023Q3. Of section headers, which the loader does not read, there are
those that linkers want.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence

from landbridge.errors import ExecutableError
from landbridge.executable.elf_class import ElfClass, LibrarySection
from landbridge.executable.parts import CodeImage
from landbridge.executable.read_only_data import ReadOnlyData, with_reference
from landbridge.instruction_sets.registry import instruction_set, is_known, names
from landbridge.records import record

_ET_DYN = 3
_PT_LOAD, _PT_DYNAMIC, _PT_GNU_STACK, _PT_GNU_RELRO = 1, 2, 0x6474E551, 0x6474E552
_X, _W, _R = 1, 2, 4
_DT_NULL, _DT_NEEDED, _DT_HASH, _DT_STRTAB, _DT_SYMTAB = 0, 1, 4, 5, 6
_DT_STRSZ, _DT_SYMENT, _DT_SONAME = 10, 11, 14
_GLOBAL_FUNCTION = 1 << 4 | 2

#: Where the functions of ``CodeImage.imports`` are found.
_LIBRARIES = ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2")


@record(frozen=True)
class _Segment:
    kind: int
    flags: int
    start: int
    size: int


def shared_library(
    image: CodeImage, exports: Iterable[str], data: ReadOnlyData | None = None, soname: str = ""
) -> bytes:
    """Returns the bytes of a shared library of ``image`` whose visible symbols are ``exports``.

    ``data``: the read-only data outside the code. ``soname``: the name under which programs linked with it search for
    it; without it, the path at link time.

    Raises ExecutableError for an image of an instruction set that is not known here, and for one whose slots share a
    page with its functions.
    """
    if not is_known(image.isa):
        raise ExecutableError(f"shared libraries are written for {', '.join(names())}; this image is for {image.isa}")
    described = instruction_set(image.isa)
    form = described.for_libraries("a shared library")
    machine, page, elf_class = described.elf, described.elf.page, ElfClass(described.elf)
    libraries = (*_LIBRARIES, *machine.libraries)
    runs = list(_runs(image, page))
    exported = sorted(exports)
    symbol_names = [*image.imports, *exported]
    strings, places = _strings([*libraries, soname, *symbol_names])
    content = b"" if data is None else data.content
    segments = len(runs) + sum(writable for _, _, writable in runs) + 4 + bool(content)
    # Symbols, strings, hash table and relocations, in one read-only segment with the headers.
    symbols_at = elf_class.header_bytes + elf_class.segment_bytes * segments
    symbols_at += -symbols_at % 8
    symbols_bytes = elf_class.symbol_bytes * (1 + len(symbol_names))
    strings_at = symbols_at + symbols_bytes
    hash_at = _up(strings_at + len(strings), 8)
    table = _hash_table(symbol_names)
    relocations_at = hash_at + len(table)
    slots = sum(map(len, image.imports.values())) + len(image.relocations)
    relocations_bytes = elf_class.relocation_bytes * slots
    base = _up(relocations_at + relocations_bytes, page)
    data_at = base + _up(len(image.code), page)
    dynamic_at = data_at + _up(len(content), page)
    code: bytes = image.code
    if data is not None:
        code = with_reference(code, data, form.address_of_data(base + data.function, data_at))

    symbols = [bytes(elf_class.symbol_bytes)]
    symbols += [elf_class.symbol(places[name], _GLOBAL_FUNCTION, 0, 0) for name in image.imports]
    for name in exported:
        # Section 1 is the code.
        symbols.append(elf_class.symbol(places[name], _GLOBAL_FUNCTION, 1, base + image.symbols[name]))
    relocations = [
        elf_class.relocation(base + slot, number, machine.absolute, 0)
        for number, name in enumerate(image.imports, start=1)
        for slot in image.imports[name]
    ]
    own = {slot: base + machine.address.unpack_from(image.code, slot)[0] for slot in image.relocations}
    relocations += [elf_class.relocation(base + slot, 0, machine.relative, at) for slot, at in own.items()]
    if machine.addends_in_place:
        code = _with_addresses(code, own, machine.address)
    tables = elf_class.tables
    dynamic = b"".join(
        elf_class.dynamic(tag, value)
        for tag, value in [
            *((_DT_NEEDED, places[library]) for library in libraries),
            *([(_DT_SONAME, places[soname])] if soname else []),
            (_DT_HASH, hash_at),
            (_DT_STRTAB, strings_at),
            (_DT_SYMTAB, symbols_at),
            (_DT_STRSZ, len(strings)),
            (_DT_SYMENT, elf_class.symbol_bytes),
            (tables.address, relocations_at),
            (tables.size, relocations_bytes),
            (tables.entry, elf_class.relocation_bytes),
            (_DT_NULL, 0),
        ]
    )
    headers = [_Segment(_PT_LOAD, _R, 0, relocations_at + relocations_bytes)]
    headers += [_Segment(_PT_LOAD, _R | (_W if w else _X), base + start, size) for start, size, w in runs]
    headers += [_Segment(_PT_LOAD, _R, data_at, len(content))] if content else []
    headers.append(_Segment(_PT_LOAD, _R | _W, dynamic_at, len(dynamic)))
    headers.append(_Segment(_PT_DYNAMIC, _R | _W, dynamic_at, len(dynamic)))
    # Only the loader writes slots; it removes the pages' write permission afterwards.
    headers += [_Segment(_PT_GNU_RELRO, _R, base + start, size) for start, size, w in runs if w]
    headers.append(_Segment(_PT_GNU_STACK, _R | _W, 0, 0))

    sections = [
        (base, LibrarySection(".text", 1, 2 | 4, len(image.code))),
        (symbols_at, LibrarySection(".dynsym", 11, 2, symbols_bytes, 3, 1, entry=elf_class.symbol_bytes)),
        (strings_at, LibrarySection(".dynstr", 3, 2, len(strings))),
        (hash_at, LibrarySection(".hash", 5, 2, len(table), 2, entry=4)),
        (dynamic_at, LibrarySection(".dynamic", 6, 2 | 1, len(dynamic), 3, entry=elf_class.dynamic_bytes)),
        (data_at, LibrarySection(".rodata", 1, 2, len(content))),
    ]
    # Besides these, every file has a section of nothing, and one of the names of all.
    header = elf_class.header(_ET_DYN, len(headers), len(sections) + 2, len(sections) + 1, dynamic_at + len(dynamic))
    created = bytearray(header)
    created += b"".join(
        elf_class.segment(s.kind, s.flags, s.start, s.size, page if s.kind == _PT_LOAD else 8) for s in headers
    )
    for at, part in (
        (symbols_at, b"".join(symbols)),
        (strings_at, strings),
        (hash_at, table),
        (relocations_at, b"".join(relocations)),
        (base, code),
        (data_at, content),
        (dynamic_at, dynamic),
    ):
        created += bytes(at - len(created)) + part
    return bytes(created) + _section_headers(elf_class, sections, len(created))


def _with_addresses(code: bytes, addresses: Mapping[int, int], form: struct.Struct) -> bytes:
    """Returns ``code`` with the addend of each slot in it."""
    filled = bytearray(code)
    for slot, address in addresses.items():
        form.pack_into(filled, slot, address)
    return bytes(filled)


def _runs(image: CodeImage, size: int) -> Iterator[tuple[int, int, bool]]:
    """Yields start, size and whether it holds slots, for each run of pages of ``size`` bytes of one kind."""
    slots = [*image.relocations, *(slot for places in image.imports.values() for slot in places)]
    written = {page for slot in slots for page in (slot // size, (slot + 7) // size)}
    for name, offset in image.symbols.items():
        if offset // size in written:
            raise ExecutableError(f"function {name!r} shares a page with addresses to fill in; compile the model again")
    start, pages = 0, _up(len(image.code), size) // size
    for page in range(1, pages + 1):
        if page == pages or (page in written) != (start in written):
            yield start * size, (page - start) * size, start in written
            start = page


def _section_headers(elf_class: ElfClass, sections: Sequence[tuple[int, LibrarySection]], at: int) -> bytes:
    """Returns the headers of ``sections``, whose addresses are file offsets too, and of a section of their names; and
    the names, which go to byte ``at``.
    """
    names, places = _strings([*(section.name for _, section in sections), ".shstrtab"])
    names_at = at + elf_class.section_bytes * (2 + len(sections))
    headers = bytes(elf_class.section_bytes)
    for address, section in sections:
        headers += elf_class.section(section, places[section.name], address, address)
    last = LibrarySection(".shstrtab", 3, 0, len(names), alignment=1)
    return headers + elf_class.section(last, places[last.name], 0, names_at) + names


def _strings(names: Iterable[str]) -> tuple[bytes, dict[str, int]]:
    """Returns a string table and the offset of each name in it."""
    table, places = bytearray(1), {}
    for name in names:
        places[name] = len(table)
        table += name.encode() + b"\0"
    return bytes(table), places


def _hash_table(names: list[str]) -> bytes:
    """Returns the table by which the loader finds symbols 1 .. n by name."""
    buckets = [0] * max(1, len(names))
    chains = [0] * (1 + len(names))
    for number, name in enumerate(names, start=1):
        bucket = _hash(name) % len(buckets)
        chains[number], buckets[bucket] = buckets[bucket], number
    words = [len(buckets), len(chains), *buckets, *chains]
    return struct.pack(f"<{len(words)}I", *words) + bytes(4 * (len(words) % 2))


def _hash(name: str) -> int:
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high
    return value


def _up(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment
