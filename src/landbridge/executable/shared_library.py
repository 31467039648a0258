"""Writes a code image as an ELF shared library, without a linker.

The image is complete except for its slots, which become dynamic relocations; the file adds a dynamic section, a symbol
table and a hash table. Structures: System V ABI, generic part, chapter 5, and its AMD64 supplement; ELF for the Arm
64-bit Architecture, 2023Q3. Of section headers, which the loader does not read, there are those that linkers want.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from landbridge.errors import ExecutableError
from landbridge.executable.abi import LARGEST_PAGE
from landbridge.executable.parts import CodeImage
from landbridge.executable.read_only_data import REFERENCES, ReadOnlyData, with_reference
from landbridge.records import record

_ET_DYN = 3
_PT_LOAD, _PT_DYNAMIC, _PT_GNU_STACK, _PT_GNU_RELRO = 1, 2, 0x6474E551, 0x6474E552
_X, _W, _R = 1, 2, 4
_DT_NULL, _DT_NEEDED, _DT_HASH, _DT_STRTAB, _DT_SYMTAB = 0, 1, 4, 5, 6
_DT_RELA, _DT_RELASZ, _DT_RELAENT, _DT_STRSZ, _DT_SYMENT, _DT_SONAME = 7, 8, 9, 10, 11, 14
_GLOBAL_FUNCTION = 1 << 4 | 2
_HEADER, _SEGMENT = 64, 56

#: Where the functions of ``CodeImage.imports`` are found.
_LIBRARIES = ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2")


@record(frozen=True)
class _Machine:
    """ELF's number of an instruction set and of two types of relocation: a symbol's address, and the load address plus
    an addend.
    """

    number: int
    absolute: int
    relative: int


_MACHINES = {"x86_64": _Machine(62, 1, 8), "aarch64": _Machine(183, 257, 1027)}


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
    if image.isa not in _MACHINES:
        raise ExecutableError(f"shared libraries are written for {', '.join(_MACHINES)}; this image is for {image.isa}")
    machine, page = _MACHINES[image.isa], LARGEST_PAGE[image.isa]
    runs = list(_runs(image, page))
    exported = sorted(exports)
    names = [*image.imports, *exported]
    strings, places = _strings([*_LIBRARIES, soname, *names])
    content = b"" if data is None else data.content
    segments = len(runs) + sum(writable for _, _, writable in runs) + 4 + bool(content)
    # Symbols, strings, hash table and relocations, in one read-only segment with the headers.
    symbols_at = _HEADER + _SEGMENT * segments
    strings_at = symbols_at + 24 * (1 + len(names))
    hash_at = strings_at + _up(len(strings), 8)
    table = _hash_table(names)
    relocations_at = hash_at + len(table)
    slots = sum(map(len, image.imports.values())) + len(image.relocations)
    base = _up(relocations_at + 24 * slots, page)
    data_at = base + _up(len(image.code), page)
    dynamic_at = data_at + _up(len(content), page)
    code = image.code
    if data is not None:
        code = with_reference(code, data, REFERENCES[image.isa].reaching(base + data.function, data_at))

    symbols = [bytes(24)]
    symbols += [struct.pack("<IBBHQQ", places[name], _GLOBAL_FUNCTION, 0, 0, 0, 0) for name in image.imports]
    for name in exported:
        # Section 1 is the code.
        symbols.append(struct.pack("<IBBHQQ", places[name], _GLOBAL_FUNCTION, 0, 1, base + image.symbols[name], 0))
    relocations = [
        struct.pack("<QQq", base + slot, number << 32 | machine.absolute, 0)
        for number, name in enumerate(image.imports, start=1)
        for slot in image.imports[name]
    ]
    for slot in image.relocations:
        (offset,) = struct.unpack_from("<Q", image.code, slot)
        relocations.append(struct.pack("<QQq", base + slot, machine.relative, base + offset))
    dynamic = b"".join(
        struct.pack("<QQ", tag, value)
        for tag, value in [
            *((_DT_NEEDED, places[library]) for library in _LIBRARIES),
            *([(_DT_SONAME, places[soname])] if soname else []),
            (_DT_HASH, hash_at),
            (_DT_STRTAB, strings_at),
            (_DT_SYMTAB, symbols_at),
            (_DT_STRSZ, len(strings)),
            (_DT_SYMENT, 24),
            (_DT_RELA, relocations_at),
            (_DT_RELASZ, 24 * slots),
            (_DT_RELAENT, 24),
            (_DT_NULL, 0),
        ]
    )
    headers = [_Segment(_PT_LOAD, _R, 0, relocations_at + 24 * slots)]
    headers += [_Segment(_PT_LOAD, _R | (_W if w else _X), base + start, size) for start, size, w in runs]
    headers += [_Segment(_PT_LOAD, _R, data_at, len(content))] if content else []
    headers.append(_Segment(_PT_LOAD, _R | _W, dynamic_at, len(dynamic)))
    headers.append(_Segment(_PT_DYNAMIC, _R | _W, dynamic_at, len(dynamic)))
    # Only the loader writes slots; it removes the pages' write permission afterwards.
    headers += [_Segment(_PT_GNU_RELRO, _R, base + start, size) for start, size, w in runs if w]
    headers.append(_Segment(_PT_GNU_STACK, _R | _W, 0, 0))

    sections = [
        (".text", 1, 2 | 4, base, len(image.code), 0, 0, 0),
        (".dynsym", 11, 2, symbols_at, 24 * (1 + len(names)), 3, 1, 24),
        (".dynstr", 3, 2, strings_at, len(strings), 0, 0, 0),
        (".hash", 5, 2, hash_at, len(table), 2, 0, 4),
        (".dynamic", 6, 2 | 1, dynamic_at, len(dynamic), 3, 0, 16),
        (".rodata", 1, 2, data_at, len(content), 0, 0, 0),
    ]
    created = bytearray(_elf_header(machine, len(headers), len(sections), dynamic_at + len(dynamic)))
    created += b"".join(_program_header(header, page) for header in headers)
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
    return bytes(created) + _section_headers(sections, len(created))


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


def _section_headers(sections: list[tuple[str, int, int, int, int, int, int, int]], at: int) -> bytes:
    """Returns the headers of ``sections`` (name, type, flags, address, size, link, info, bytes of an entry), whose
    addresses are file offsets too, and of a section of their names; and the names, which go to byte ``at``.
    """
    names, places = _strings([*(section[0] for section in sections), ".shstrtab"])
    names_at = at + 64 * (2 + len(sections))
    headers = bytes(64)
    for name, kind, flags, address, size, link, info, entry in sections:
        headers += struct.pack("<IIQQQQIIQQ", places[name], kind, flags, address, address, size, link, info, 8, entry)
    return headers + struct.pack("<IIQQQQIIQQ", places[".shstrtab"], 3, 0, 0, names_at, len(names), 0, 0, 1, 0) + names


def _elf_header(machine: _Machine, segments: int, sections: int, sections_at: int) -> bytes:
    """Returns the header of a file with this many sections besides the two that every file has; the last holds their
    names.
    """
    identity = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    counts = (_SEGMENT, segments, 64, sections + 2, sections + 1)
    return identity + struct.pack(
        "<HHIQQQIHHHHHH", _ET_DYN, machine.number, 1, 0, _HEADER, sections_at, 0, _HEADER, *counts
    )


def _program_header(s: _Segment, page: int) -> bytes:
    alignment = page if s.kind == _PT_LOAD else 8
    return struct.pack("<IIQQQQQQ", s.kind, s.flags, s.start, s.start, s.start, s.size, s.size, alignment)


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
