"""Writes a code image as a static library: one relocatable ELF object in an archive, without a linker.

The image is the object's section ``.text``, its slots are ``.data.rel.ro``, separate read-only data is ``.rodata``, and
a linker places them anywhere, so references from the code to the others become relocations again. Structures: System V
ABI, generic part, chapter 4; the common archive format with the index of the GNU tools.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace

from landbridge.errors import ExecutableError
from landbridge.executable.abi import CONSTANT_ALIGNMENT
from landbridge.executable.elf_class import ElfClass, LibrarySection
from landbridge.executable.parts import CodeImage
from landbridge.executable.read_only_data import ReadOnlyData, with_reference
from landbridge.instruction_sets.code_forms import CodeForms
from landbridge.instruction_sets.elf import Elf, Through
from landbridge.instruction_sets.registry import instruction_set, is_known, names

_ET_REL = 1
_PROGBITS, _SYMTAB, _STRTAB = 1, 2, 3
#: The type of a processor's section of attributes (ELF for the Arm Architecture, 2023Q3, table 5).
_ATTRIBUTES = 0x70000003
_WRITE, _ALLOC, _EXECUTE, _INFO_LINK = 1, 2, 4, 64
_LOCAL_NONE, _LOCAL_SECTION, _GLOBAL_NONE, _GLOBAL_FUNCTION = 0, 3, 1 << 4, 1 << 4 | 2
#: Code reaches pages of 4 KiB by their number, so the low bits of offsets have to be those of addresses.
_ALIGNMENT = 4096
_TEXT, _DATA, _TEXT_RELOCATIONS, _DATA_RELOCATIONS, _SYMBOLS, _STRINGS, _NAMES, _STACK, _READ_ONLY = range(1, 10)
#: Those with a symbol, 1 and following.
_SECTIONS = (_TEXT, _DATA, _READ_ONLY)
#: A relocation: its place in the section, the number of its symbol, its type and addend.
_Entry = tuple[int, int, int, int]


def static_library(
    image: CodeImage, exports: Mapping[str, int], member: str, data: ReadOnlyData | None = None
) -> bytes:
    """Returns the bytes of an archive of one object, called ``member``, with a global symbol for each offset of
    ``exports``.

    ``data``: the read-only data outside the code.

    Raises ExecutableError for an image of an instruction set that is not known here, or without ``slots_start``.
    """
    return _archive(_object(image, exports, data), exports, member)


def _object(image: CodeImage, exports: Mapping[str, int], data: ReadOnlyData | None) -> bytes:
    if not is_known(image.isa):
        raise ExecutableError(f"static libraries are written for {', '.join(names())}; this image is for {image.isa}")
    described = instruction_set(image.isa)
    form = described.for_libraries("a static library")
    machine, elf_class = described.elf, ElfClass(described.elf)
    start = image.slots_start
    slots = [*image.relocations, *(slot for places in image.imports.values() for slot in places)]
    end = max(slots, default=start - 8) + 8
    if min(slots, default=start) < start or not start:
        raise ExecutableError("the image does not say where its slots begin; compile the model again")
    imports = list(image.imports)
    local = [machine.code_symbol] if machine.code_symbol else []
    strings, places = bytearray(1), {}
    for name in (*local, *imports, *exports):
        places[name] = len(strings)
        strings += name.encode() + b"\0"
    first_halves = _first_halves(image, machine, form, data)
    # Symbols 1 to 3 are the sections; first halves of addresses, that of code, imported and exported symbols follow.
    symbols = [bytes(elf_class.symbol_bytes), *(elf_class.symbol(0, _LOCAL_SECTION, s, 0) for s in _SECTIONS)]
    symbols += [elf_class.symbol(0, _LOCAL_NONE, _TEXT, at) for at in first_halves]
    symbols += [elf_class.symbol(places[name], _LOCAL_NONE, _TEXT, 0) for name in local]
    first_global = len(symbols)
    symbols += [elf_class.symbol(places[name], _GLOBAL_NONE, 0, 0) for name in imports]
    symbols += [elf_class.symbol(places[n], _GLOBAL_FUNCTION, _TEXT, at) for n, at in exports.items()]
    text_relocations = [
        (at, first_halves[target], kind, 0) if _is_other_half(machine, kind) else (at, 2, kind, target - start)
        for at, kind, target in image.slot_references
    ]
    code = image.code
    if data is not None:
        code = with_reference(code, data, form.address_of_data(0, form.data_offset))
        text_relocations += [
            (data.function + at, first_halves[data.function + plus], kind, 0)
            if _is_other_half(machine, kind)
            else (data.function + at, 3, kind, plus)
            for at, kind, plus in form.data_relocations
        ]
    data_relocations = []
    for slot in image.relocations:
        (offset,) = machine.address.unpack_from(image.code, slot)
        inside = start <= offset < end
        data_relocations.append((slot - start, 2 if inside else 1, machine.absolute, offset - start * inside))
    for number, name in enumerate(imports, start=first_global):
        data_relocations += [(slot - start, number, machine.absolute, 0) for slot in image.imports[name]]
    tables = elf_class.tables
    relocations = {"kind": tables.section, "flags": _INFO_LINK, "link": _SYMBOLS, "entry": elf_class.relocation_bytes}
    parts: list[tuple[LibrarySection, bytes]] = []

    def add(body: bytes, name: str, kind: int, flags: int, **facts: int) -> None:
        parts.append((LibrarySection(name, kind, flags, len(body), **facts), body))

    add(_with_addends(code, text_relocations, machine), ".text", _PROGBITS, _ALLOC | _EXECUTE, alignment=_ALIGNMENT)
    slots_content = _with_addends(image.code[start:end], data_relocations, machine)
    add(slots_content, ".data.rel.ro", _PROGBITS, _ALLOC | _WRITE, alignment=16)
    add(_table(elf_class, text_relocations), f"{tables.prefix}.text", **relocations, info=_TEXT)
    add(_table(elf_class, data_relocations), f"{tables.prefix}.data.rel.ro", **relocations, info=_DATA)
    entry = elf_class.symbol_bytes
    add(b"".join(symbols), ".symtab", _SYMTAB, 0, link=_STRINGS, info=first_global, entry=entry)
    add(bytes(strings), ".strtab", _STRTAB, 0, alignment=1)
    names_at = len(parts)
    add(b"", ".shstrtab", _STRTAB, 0, alignment=1)
    add(b"", ".note.GNU-stack", _PROGBITS, 0, alignment=1)
    add(b"" if data is None else data.content, ".rodata", _PROGBITS, _ALLOC, alignment=CONSTANT_ALIGNMENT)
    if machine.attributes:
        add(machine.attributes, machine.attributes_name, _ATTRIBUTES, 0, alignment=1)
    section_names = "\0".join(["", *(section.name for section, _ in parts), ""])
    parts[names_at] = (replace(parts[names_at][0], size=len(section_names)), section_names.encode())
    created, headers = bytearray(elf_class.header_bytes), [bytes(elf_class.section_bytes)]
    for section, body in parts:
        created += bytes(-len(created) % section.alignment)
        at = section_names.index(f"\0{section.name}\0") + 1
        headers.append(elf_class.section(section, at, 0, len(created)))
        created += body
    created += bytes(-len(created) % 8)
    created[: elf_class.header_bytes] = elf_class.header(_ET_REL, 0, len(headers), _NAMES, len(created))
    return bytes(created + b"".join(headers))


def _is_other_half(machine: Elf, kind: int) -> bool:
    found = machine.relocations.get(kind)
    return found is not None and found.through is Through.OTHER_HALF


def _first_halves(image: CodeImage, machine: Elf, form: CodeForms, data: ReadOnlyData | None) -> dict[int, int]:
    """Returns the number of the symbol of each first half of an address whose other half is a relocation, by offset."""
    found = [target for _, kind, target in image.slot_references if _is_other_half(machine, kind)]
    if data is not None:
        found += [data.function + plus for _, kind, plus in form.data_relocations if _is_other_half(machine, kind)]
    return {at: number for number, at in enumerate(sorted(set(found)), start=1 + len(_SECTIONS))}


def _with_addends(content: bytes, relocations: Sequence[_Entry], machine: Elf) -> bytes:
    """Returns ``content`` with the addends of its ``relocations``, where their table has none."""
    if not machine.addends_in_place:
        return content
    filled = bytearray(content)
    for place, _, kind, addend in relocations:
        write = machine.relocations[kind].write_addend
        if write is None:
            raise ExecutableError(f"relocation type {kind} of ELF machine {machine.machine} has no form for an addend")
        write(filled, place, addend)
    return bytes(filled)


def _table(elf_class: ElfClass, relocations: Sequence[_Entry]) -> bytes:
    return b"".join(elf_class.relocation(*entry) for entry in relocations)


def _archive(content: bytes, exports: Mapping[str, int], member: str) -> bytes:
    names = b"".join(name.encode() + b"\0" for name in exports)
    size = 4 + 4 * len(exports) + len(names)
    index = _entry("/", size)
    first = 8 + len(index) + size + size % 2
    table = struct.pack(f">{1 + len(exports)}I", len(exports), *[first] * len(exports)) + names
    header = b"!<arch>\n" + index + table + b"\n" * (size % 2)
    return header + _entry(f"{member}/", len(content)) + content + b"\n" * (len(content) % 2)


def _entry(name: str, size: int) -> bytes:
    return f"{name:<16}{0:<12}{0:<6}{0:<6}{644:<8}{size:<10}`\n".encode()
