"""Writes a code image as a static library: one relocatable ELF object in an archive, without a linker.

The image is the object's section ``.text``, its slots are ``.data.rel.ro``, separate read-only data is ``.rodata``, and
a linker places them anywhere, so references from the code to the others become relocations again. Structures: System V
ABI, generic part, chapter 4; the common archive format with the index of the GNU tools.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from landbridge.errors import ExecutableError
from landbridge.executable.abi import CONSTANT_ALIGNMENT
from landbridge.executable.parts import CodeImage
from landbridge.executable.read_only_data import REFERENCES, ReadOnlyData, with_reference

#: ELF's number of each instruction set, and its relocation to a 64-bit address.
_MACHINES = {"x86_64": (62, 1), "aarch64": (183, 257)}
_ET_REL = 1
_PROGBITS, _SYMTAB, _STRTAB, _RELA = 1, 2, 3, 4
_WRITE, _ALLOC, _EXECUTE, _INFO_LINK = 1, 2, 4, 64
_LOCAL_SECTION, _GLOBAL_NONE, _GLOBAL_FUNCTION = 3, 1 << 4, 1 << 4 | 2
#: Code reaches pages of 4 KiB by their number, so the low bits of offsets have to be those of addresses.
_ALIGNMENT = 4096
_TEXT, _DATA, _TEXT_RELA, _DATA_RELA, _SYMBOLS, _STRINGS, _NAMES, _STACK, _READ_ONLY = range(1, 10)


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
    if image.isa not in _MACHINES:
        raise ExecutableError(f"static libraries are written for {', '.join(_MACHINES)}; this image is for {image.isa}")
    machine, absolute = _MACHINES[image.isa]
    start = image.slots_start
    slots = [*image.relocations, *(slot for places in image.imports.values() for slot in places)]
    end = max(slots, default=start - 8) + 8
    if min(slots, default=start) < start or not start:
        raise ExecutableError("the image does not say where its slots begin; compile the model again")
    imports = list(image.imports)
    names = [*imports, *exports]
    strings, places = bytearray(1), {}
    for name in names:
        places[name] = len(strings)
        strings += name.encode() + b"\0"
    # Symbols 1 to 3 are the sections; imported and exported symbols follow.
    sections = (_TEXT, _DATA, _READ_ONLY)
    symbols = [bytes(24), *(struct.pack("<IBBHQQ", 0, _LOCAL_SECTION, 0, s, 0, 0) for s in sections)]
    symbols += [struct.pack("<IBBHQQ", places[name], _GLOBAL_NONE, 0, 0, 0, 0) for name in imports]
    symbols += [struct.pack("<IBBHQQ", places[n], _GLOBAL_FUNCTION, 0, _TEXT, at, 0) for n, at in exports.items()]
    text_relocations = [(at, 2 << 32 | kind, target - start) for at, kind, target in image.slot_references]
    code = image.code
    if data is not None:
        reference = REFERENCES[image.isa]
        code = with_reference(code, data, reference.code)
        text_relocations += [(data.function + at, 3 << 32 | kind, plus) for at, kind, plus in reference.relocations]
    data_relocations = []
    for slot in image.relocations:
        (offset,) = struct.unpack_from("<Q", image.code, slot)
        inside = start <= offset < end
        data_relocations.append((slot - start, (2 if inside else 1) << 32 | absolute, offset - start * inside))
    for number, name in enumerate(imports, start=1 + len(sections)):
        data_relocations += [(slot - start, number << 32 | absolute, 0) for slot in image.imports[name]]
    section_names = (
        "\0.text\0.data.rel.ro\0.rela.text\0.rela.data.rel.ro\0.symtab\0.strtab\0.shstrtab\0.note.GNU-stack\0.rodata\0"
    )
    parts = [
        (_PROGBITS, _ALLOC | _EXECUTE, 0, 0, _ALIGNMENT, 0, code),
        (_PROGBITS, _ALLOC | _WRITE, 0, 0, 16, 0, image.code[start:end]),
        (_RELA, _INFO_LINK, _SYMBOLS, _TEXT, 8, 24, _table(text_relocations)),
        (_RELA, _INFO_LINK, _SYMBOLS, _DATA, 8, 24, _table(data_relocations)),
        (_SYMTAB, 0, _STRINGS, 1 + len(sections), 8, 24, b"".join(symbols)),
        (_STRTAB, 0, 0, 0, 1, 0, bytes(strings)),
        (_STRTAB, 0, 0, 0, 1, 0, section_names.encode()),
        (_PROGBITS, 0, 0, 0, 1, 0, b""),
        (_PROGBITS, _ALLOC, 0, 0, CONSTANT_ALIGNMENT, 0, b"" if data is None else data.content),
    ]
    created, headers, at = bytearray(64), [bytes(64)], 0
    for name, (kind, flags, link, info, alignment, entry, body) in zip(
        section_names.split("\0")[1:-1], parts, strict=True
    ):
        created += bytes(-len(created) % alignment)
        at = section_names.index("\0" + name + "\0") + 1
        headers.append(
            struct.pack("<IIQQQQIIQQ", at, kind, flags, 0, len(created), len(body), link, info, alignment, entry)
        )
        created += body
    created += bytes(-len(created) % 8)
    identity = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    counts = (0, 64, 0, 0, 64, len(headers), _NAMES)
    created[:64] = identity + struct.pack("<HHIQQQIHHHHHH", _ET_REL, machine, 1, 0, 0, len(created), *counts)
    return bytes(created + b"".join(headers))


def _table(relocations: list[tuple[int, int, int]]) -> bytes:
    return b"".join(struct.pack("<QQq", *each) for each in relocations)


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
