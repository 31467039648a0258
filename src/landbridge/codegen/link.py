"""Linking relocatable x86-64 ELF objects into one flat, position-independent image.

Executable and read-only sections of all objects are laid out one after another; references between them are
resolved here, so that what is left for the loader are two lists: 8-byte slots that receive the address of an
imported function, and 8-byte slots to which the load address is added. Calls of imported functions go through
stubs that jump through their slot. All slots stand after everything else, from a page boundary on, so that they
can become pages of their own. Writable sections have no place in an image whose pages are executable.

Numbers and structures: System V ABI, AMD64 supplement, version 1.0, chapter 4.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from landbridge.errors import CodegenError

#: The instruction sets whose objects can be linked.
LINKED = ("x86_64",)

_SHT_PROGBITS, _SHT_SYMTAB, _SHT_RELA = 1, 2, 4
_SHF_WRITE, _SHF_ALLOC, _SHF_EXECINSTR = 1, 2, 4
_STB_LOCAL = 0
_SHN_UNDEF = 0

_R_64, _R_PC32, _R_PLT32, _R_GOTPCREL, _R_PC64, _R_GOTPCRELX, _R_REX_GOTPCRELX = 1, 2, 4, 9, 24, 41, 42
_GOT = (_R_GOTPCREL, _R_GOTPCRELX, _R_REX_GOTPCRELX)

#: ``jmp *slot(%rip)``, to be followed by the distance to the slot.
_JUMP_THROUGH = b"\xff\x25"
_STUB_BYTES = 8
_PAGE = 4096


@dataclass(frozen=True)
class LinkedImage:
    """A flat image: see ``landbridge.executable.parts.CodeImage`` for the fields."""

    code: bytes
    symbols: dict[str, int]
    imports: dict[str, tuple[int, ...]]
    relocations: tuple[int, ...]


@dataclass(frozen=True)
class _Section:
    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int


@dataclass(frozen=True)
class _Symbol:
    name: str
    is_local: bool
    section: int
    value: int


class _Object:
    """The parts of one relocatable object that linking needs."""

    def __init__(self, data: bytes) -> None:
        if data[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<HH", data, 16) != (1, 62):
            raise CodegenError("not a relocatable little-endian x86-64 ELF object; only those can be linked")
        self.data = data
        table, entry, count, names = struct.unpack_from("<Q10xHHH", data, 40)
        raw = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * entry) for i in range(count)]
        strings = raw[names][4]
        self.sections = [
            _Section(_string(data, strings + r[0]), r[1], r[2], r[4], r[5], r[6], r[7], max(1, r[8])) for r in raw
        ]
        self.symbols: list[_Symbol] = []
        for section in self.sections:
            if section.kind == _SHT_SYMTAB:
                text = self.sections[section.link].offset
                for at in range(section.offset, section.offset + section.size, 24):
                    name, info, _, index, value, _ = struct.unpack_from("<IBBHQQ", data, at)
                    self.symbols.append(_Symbol(_string(data, text + name), info >> 4 == _STB_LOCAL, index, value))
        #: Image offset of each section that is placed.
        self.placed: dict[int, int] = {}

    def relocations(self) -> Iterator[tuple[_Section, int]]:
        """Each relocation's section and its offset in the file."""
        for section in self.sections:
            if section.kind == _SHT_RELA:
                for at in range(section.offset, section.offset + section.size, 24):
                    yield section, at

    def body(self, section: _Section) -> bytes:
        return self.data[section.offset : section.offset + section.size]


@dataclass
class _Image:
    code: bytearray = field(default_factory=bytearray)
    symbols: dict[str, int] = field(default_factory=dict)
    #: Image offset of the slot of each imported function, and of each address taken of our own code.
    import_slots: dict[str, int] = field(default_factory=dict)
    stubs: dict[str, int] = field(default_factory=dict)
    imports: dict[str, list[int]] = field(default_factory=dict)
    own_slots: dict[int, int] = field(default_factory=dict)
    relocations: list[int] = field(default_factory=list)

    def align(self, alignment: int) -> int:
        self.code.extend(bytes(-len(self.code) % alignment))
        return len(self.code)

    def slot(self, value: int = 0) -> int:
        at = self.align(8)
        self.code += struct.pack("<Q", value)
        return at


def only_linked(target: str) -> str:
    """The end of an error: what can be linked, and so be compiled for, in the place of ``target``."""
    return (
        f"cannot be linked into an image yet, only that for {', '.join(LINKED)}; compile for such a target, as in "
        f"'llvm -mcpu=x86-64-v3', in the place of {target!r}"
    )


def link_objects(objects: Sequence[bytes]) -> LinkedImage:
    """One image of ``objects``; global symbols of one are visible to all, what none defines is imported.

    Raises CodegenError for a writable section that is not empty, a symbol defined twice, or a relocation
    that position-independent code does not need.
    """
    parsed = [_Object(data) for data in objects]
    image = _Image()
    # Code first and read-only data after it: distances between functions stay short.
    for obj in parsed:
        _place(image, obj, lambda section: bool(section.flags & _SHF_EXECINSTR))
    for obj in parsed:
        _place(image, obj, lambda section: not section.flags & (_SHF_EXECINSTR | _SHF_WRITE))
    for obj in parsed:
        for symbol in obj.symbols:
            if not symbol.is_local and symbol.section in obj.placed:
                if symbol.name in image.symbols:
                    raise CodegenError(f"symbol {symbol.name!r} is defined twice; function names must be unique")
                image.symbols[symbol.name] = obj.placed[symbol.section] + symbol.value
    for obj in parsed:
        _reserve_stubs(image, obj)
    image.align(_PAGE)
    for obj in parsed:
        _place(image, obj, lambda section: bool(section.flags & _SHF_WRITE))
    for obj in parsed:
        _relocate(image, obj)
    imports = {name: tuple(slots) for name, slots in image.imports.items()}
    return LinkedImage(bytes(image.code), image.symbols, imports, tuple(image.relocations))


def _place(image: _Image, obj: _Object, wanted: Callable[[_Section], bool]) -> None:
    for index, section in enumerate(obj.sections):
        if not section.flags & _SHF_ALLOC or section.name == ".eh_frame" or not section.size:
            continue
        # .data.rel.ro holds addresses and is written by the loader alone, before the pages become executable.
        if section.flags & _SHF_WRITE and not section.name.startswith(".data.rel.ro"):
            raise CodegenError(
                f"section {section.name!r} is writable ({section.size} bytes); an image has no writable pages: "
                "keep state in memory that the caller passes"
            )
        if section.kind != _SHT_PROGBITS or not wanted(section):
            continue
        obj.placed[index] = image.align(section.align)
        image.code += obj.body(section)


def _reserve_stubs(image: _Image, obj: _Object) -> None:
    """Room for the stubs of the functions that ``obj`` calls and no object defines."""
    for section, at in obj.relocations():
        _, info, _ = struct.unpack_from("<QQq", obj.data, at)
        symbol, kind = obj.symbols[info >> 32], info & 0xFFFFFFFF
        imported = symbol.section == _SHN_UNDEF and symbol.name not in image.symbols
        if imported and kind in (_R_PC32, _R_PLT32) and section.info in obj.placed and symbol.name not in image.stubs:
            image.stubs[symbol.name] = image.align(_STUB_BYTES)
            image.code += _JUMP_THROUGH.ljust(_STUB_BYTES, b"\xcc")


def _relocate(image: _Image, obj: _Object) -> None:
    for section, at in obj.relocations():
        if section.info in obj.placed:
            offset, info, addend = struct.unpack_from("<QQq", obj.data, at)
            place = obj.placed[section.info] + offset
            _apply(image, obj, place, info & 0xFFFFFFFF, obj.symbols[info >> 32], addend)


def _apply(image: _Image, obj: _Object, place: int, kind: int, symbol: _Symbol, addend: int) -> None:
    target = _address(image, obj, symbol)
    if kind == _R_64:
        if target is None:
            if addend:
                raise CodegenError(f"address of imported {symbol.name!r} plus {addend}; an import has no offset")
            image.imports.setdefault(symbol.name, []).append(place)
        else:
            struct.pack_into("<Q", image.code, place, target + addend)
            image.relocations.append(place)
        return
    if kind in _GOT:
        target = _import_slot(image, symbol.name) if target is None else _own_slot(image, target)
    elif target is None and kind in (_R_PC32, _R_PLT32):
        target = _stub(image, symbol.name)
    elif kind not in (_R_PC32, _R_PLT32, _R_PC64):
        raise CodegenError(f"relocation type {kind} against {symbol.name!r}: not position-independent code")
    assert target is not None
    struct.pack_into("<q" if kind == _R_PC64 else "<i", image.code, place, target + addend - place)


def _address(image: _Image, obj: _Object, symbol: _Symbol) -> int | None:
    """The image offset of a symbol; None when it is imported."""
    if symbol.section in obj.placed:
        return obj.placed[symbol.section] + symbol.value
    if symbol.section != _SHN_UNDEF:
        raise CodegenError(f"symbol {symbol.name!r} lies in a section that is not part of the image")
    return image.symbols.get(symbol.name)


def _import_slot(image: _Image, name: str) -> int:
    if name not in image.import_slots:
        image.import_slots[name] = image.slot()
        image.imports.setdefault(name, []).append(image.import_slots[name])
    return image.import_slots[name]


def _own_slot(image: _Image, target: int) -> int:
    if target not in image.own_slots:
        image.own_slots[target] = image.slot(target)
        image.relocations.append(image.own_slots[target])
    return image.own_slots[target]


def _stub(image: _Image, name: str) -> int:
    """The reserved stub of ``name``, which now gets the distance to its slot."""
    at, slot = image.stubs[name], _import_slot(image, name)
    struct.pack_into("<i", image.code, at + len(_JUMP_THROUGH), slot - (at + len(_JUMP_THROUGH) + 4))
    return at


def _string(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()
