"""Links relocatable ELF objects into one flat, position-independent image.

Executable and read-only sections of all objects are laid out one after another; references between them are
resolved here, so that what is left for the loader are two lists: slots that receive the address of an imported
function, and slots to which the load address is added. Slots have 8 bytes, or 4 where objects of 32 bits have their
own. Calls of imported functions go through stubs that jump through their slot. All slots stand after everything else,
from a page boundary on, so that they can become pages of their own. Writable sections have no place in an image whose
pages are executable.

What depends on the instruction set is its description, `landbridge.instruction_sets.elf`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import field

from landbridge.codegen.elf_object import (
    SHF_ALLOC,
    SHF_EXECINSTR,
    SHF_WRITE,
    SHN_UNDEF,
    SHT_PROGBITS,
    ElfObject,
    ElfReference,
    ElfSection,
    ElfSymbol,
)
from landbridge.errors import CodegenError
from landbridge.instruction_sets.description import InstructionSet
from landbridge.instruction_sets.elf import Elf, Through
from landbridge.instruction_sets.registry import instruction_set, names, usable
from landbridge.records import record
from landbridge.targets.elsewhere import SOURCE, WITHOUT_SYSTEM

#: Characters of a target in an error.
_SHOWN = 100


@record(frozen=True)
class LinkedImage:
    """A flat image: see ``landbridge.executable.parts.CodeImage`` for the fields."""

    isa: str
    code: bytes
    symbols: dict[str, int]
    imports: dict[str, tuple[int, ...]]
    relocations: tuple[int, ...]
    slots_start: int = 0
    slot_references: tuple[tuple[int, int, int], ...] = ()


class _Placed(ElfObject):
    """An object, and the image offset of each of its sections that is placed."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.placed: dict[int, int] = {}


@record
class _Image:
    isa: str
    elf: Elf
    code: bytearray = field(default_factory=bytearray)
    symbols: dict[str, int] = field(default_factory=dict)
    #: Image offset of the slot of each imported function, and of each address taken of our own code.
    import_slots: dict[str, int] = field(default_factory=dict)
    stubs: dict[str, int] = field(default_factory=dict)
    #: The stubs that reach their slots.
    joined: set[int] = field(default_factory=set)
    imports: dict[str, list[int]] = field(default_factory=dict)
    owned_slots: dict[int, int] = field(default_factory=dict)
    relocations: list[int] = field(default_factory=list)
    slots_start: int = 0
    slot_references: list[tuple[int, int, int]] = field(default_factory=list)
    #: What the reference at each location reaches.
    reached: dict[int, int] = field(default_factory=dict)

    def align(self, alignment: int) -> int:
        self.code.extend(bytes(-len(self.code) % alignment))
        return len(self.code)

    def slot(self, value: int = 0) -> int:
        at = self.align(8)
        self.code += struct.pack("<Q", value)
        return at


def _short(target: str) -> str:
    """Returns a short text of a target, which may have a hundred features."""
    return repr(target if len(target) <= _SHOWN else f"{target[:_SHOWN]}...")


def only_linked(target: str, isa: str) -> str:
    """Returns the end of an error that says which targets can be linked, in place of ``target`` for ``isa``."""
    way = WITHOUT_SYSTEM if isa.startswith("thumb") else SOURCE
    return (
        f"cannot be linked into an image, only that for {', '.join(names())}; compile for such a target, as in "
        f"'llvm -mcpu=x86-64-v3' or 'raspberry-pi-5', in the place of {_short(target)}; or {way}"
    )


def link_objects(objects: Sequence[bytes], isa: str | None = None) -> LinkedImage:
    """Links ``objects`` to one image; global symbols of one are visible to all, undefined ones are imported.

    ``isa``: the instruction set that they were made for; None for the first one whose ELF number they have.

    Raises CodegenError for a writable section that is not empty, a symbol defined twice, objects of several
    instruction sets or of one that has no description, or a relocation that position-independent code does not need.
    """
    parsed = [_Placed(data) for data in objects]
    described = _instruction_set({(obj.machine, obj.bits) for obj in parsed}, isa)
    image = _Image(described.name, described.elf)
    # Code first and read-only data after it: distances between functions stay short.
    for obj in parsed:
        _location(image, obj, lambda section: bool(section.flags & SHF_EXECINSTR))
    for obj in parsed:
        _location(image, obj, lambda section: not section.flags & (SHF_EXECINSTR | SHF_WRITE))
    for obj in parsed:
        for symbol in obj.symbols:
            if not symbol.is_local and symbol.section in obj.placed:
                if symbol.name in image.symbols:
                    raise CodegenError(f"symbol {symbol.name!r} is defined twice; function names must be unique")
                image.symbols[symbol.name] = obj.placed[symbol.section] + symbol.value
    for obj in parsed:
        _reserve_stubs(image, obj)
    image.slots_start = image.align(image.elf.page)
    for obj in parsed:
        _location(image, obj, lambda section: bool(section.flags & SHF_WRITE))
    other_halves = []
    for obj in parsed:
        for reference in obj.references():
            if reference.section in obj.placed:
                if _through(image, reference) is Through.OTHER_HALF:
                    other_halves.append((obj, reference))
                else:
                    _resolve(image, obj, reference)
    for obj, reference in other_halves:  # their first halves may come after them
        first = _address(image, obj, reference.symbol)
        assert first is not None, "a label"
        _write_other_half(image, reference.kind, obj.placed[reference.section] + reference.offset, first)
    image.align(8)  # the last slot of an object may be shorter than those that are added here
    imports = {name: tuple(slots) for name, slots in image.imports.items()}
    slots = image.slots_start, tuple(image.slot_references)
    return LinkedImage(image.isa, bytes(image.code), image.symbols, imports, tuple(image.relocations), *slots)


def _instruction_set(machines: set[tuple[int, int]], isa: str | None) -> InstructionSet:
    """Returns that of ``machines``, ELF's number and the bits of an address."""
    possible = usable() if isa is None else [instruction_set(isa)]
    found = next((each for each in possible if {(each.elf.machine, each.elf.bits)} == machines), None)
    if found is None:
        present = ", ".join(f"{machine} of {bits} bits" for machine, bits in sorted(machines))
        raise CodegenError(
            f"objects for ELF machines {present} cannot be linked into one image; legal: one of "
            + ", ".join(f"{each.elf.machine} of {each.elf.bits} bits ({each.name})" for each in usable())
        )
    return found


def _through(image: _Image, reference: ElfReference) -> Through | None:
    """Returns how ``reference`` reaches its symbol; None for a type that is not described."""
    relocation = image.elf.relocations.get(reference.kind)
    return None if relocation is None else relocation.through


def _location(image: _Image, obj: _Placed, wanted: Callable[[ElfSection], bool]) -> None:
    for index, section in enumerate(obj.sections):
        if not section.flags & SHF_ALLOC or section.name == ".eh_frame" or not section.size:
            continue
        # .data.rel.ro holds addresses and is written by the loader alone, before the pages become executable.
        if section.flags & SHF_WRITE and not section.name.startswith(".data.rel.ro"):
            raise CodegenError(
                f"section {section.name!r} is writable ({section.size} bytes); an image has no writable pages: "
                "keep state in memory that the caller passes"
            )
        if section.kind != SHT_PROGBITS or not wanted(section):
            continue
        obj.placed[index] = image.align(section.align)
        image.code += obj.body(section)


def _reserve_stubs(image: _Image, obj: _Placed) -> None:
    """Reserves space for the stubs of the functions that ``obj`` calls and no object defines."""
    for reference in obj.references():
        name = reference.symbol.name
        relocation = image.elf.relocations.get(reference.kind)
        imported = reference.symbol.section == SHN_UNDEF and name not in image.symbols
        called = relocation is not None and relocation.through is Through.STUB and reference.section in obj.placed
        if imported and called and name not in image.stubs:
            image.stubs[name] = image.align(len(image.elf.stub))
            image.code += image.elf.stub


def _resolve(image: _Image, obj: _Placed, reference: ElfReference) -> None:
    location, symbol, kind = obj.placed[reference.section] + reference.offset, reference.symbol, reference.kind
    if _through(image, reference) is Through.NO_SYMBOL:
        return
    addend = _addend(image, reference, location)
    target = _address(image, obj, symbol)
    relocation = image.elf.relocations.get(reference.kind)
    if relocation is None or (target is None and relocation.through is Through.NOTHING):
        raise CodegenError(
            f"relocation type {reference.kind} of {image.isa} against {symbol.name!r}: not position-independent code"
        )
    if relocation.through is Through.LOADER:
        if target is None:
            if addend:
                raise CodegenError(f"address of imported {symbol.name!r} plus {addend}; an import has no offset")
            image.imports.setdefault(symbol.name, []).append(location)
            return
        image.relocations.append(location)
    elif relocation.through is Through.SLOT:
        target = _import_slot(image, symbol.name) if target is None else _owned_slot(image, target)
        kind = relocation.direct
    elif target is None:
        target = _stub(image, symbol.name)
    _write(image, kind, location, target, addend)


def _addend(image: _Image, reference: ElfReference, location: int) -> int:
    if reference.addend is not None:
        return reference.addend
    relocation = image.elf.relocations.get(reference.kind)
    return 0 if relocation is None or relocation.read is None else relocation.read(image.code, location)


def _write(image: _Image, kind: int, location: int, target: int, addend: int) -> None:
    """Writes a relocation of type ``kind`` at ``location``, so that it reaches ``target``."""
    if location < image.slots_start <= target:
        image.slot_references.append((location, kind, target + addend))
    image.reached[location] = target + addend
    image.elf.relocations[kind].write(image.code, location, target + addend)


def _write_other_half(image: _Image, kind: int, location: int, first: int) -> None:
    """Writes the other half of the address whose first half is at ``first``."""
    target = image.reached.get(first)
    if target is None:
        raise CodegenError(f"relocation type {kind} of {image.isa}: what is at byte {first} is no half of an address")
    if location < image.slots_start <= target:
        image.slot_references.append((location, kind, first))
    image.elf.relocations[kind].write(image.code, location, location + target - first)


def _address(image: _Image, obj: _Placed, symbol: ElfSymbol) -> int | None:
    """Returns the image offset of a symbol; None when it is imported."""
    if symbol.section in obj.placed:
        return obj.placed[symbol.section] + symbol.value
    if symbol.section != SHN_UNDEF:
        raise CodegenError(f"symbol {symbol.name!r} lies in a section that is not part of the image")
    return image.symbols.get(symbol.name)


def _import_slot(image: _Image, name: str) -> int:
    if name not in image.import_slots:
        image.import_slots[name] = image.slot()
        image.imports.setdefault(name, []).append(image.import_slots[name])
    return image.import_slots[name]


def _owned_slot(image: _Image, target: int) -> int:
    if target not in image.owned_slots:
        image.owned_slots[target] = image.slot(target)
        image.relocations.append(image.owned_slots[target])
    return image.owned_slots[target]


def _stub(image: _Image, name: str) -> int:
    """Returns the reserved stub of ``name``, and fills it on the first call."""
    at = image.stubs[name]
    if at not in image.joined:
        image.joined.add(at)
        slot = _import_slot(image, name)
        for offset, kind, addend in image.elf.stub_references:
            if image.elf.relocations[kind].through is Through.OTHER_HALF:
                _write_other_half(image, kind, at + offset, at + addend)
            else:
                _write(image, kind, at + offset, slot, addend)
    return at
