"""WebAssembly modules as bytes: what LLVM's objects lack to be loaded, and where their data lies.

An object of LLVM is a module without exports, whose data begin at address 0 of an imported memory. Custom sections list
its symbols and the places with addresses. Sources: WebAssembly Core Specification 2.0, chapter 5 (binary format), and
"WebAssembly Object File Linking", version 2 (https://github.com/WebAssembly/tool-conventions).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NoReturn

from landbridge.errors import ExecutableError
from landbridge.records import record

#: The format of images with such modules.
WASM_FORMAT = "wasm"
#: Bytes of a page of memory.
PAGE_BYTES = 1 << 16
#: Bytes of the stack of kernels: many times what a kernel's temporaries may take there, and its spilled vectors.
STACK_BYTES = 1 << 20
#: The multiple at which data, stack and tensors begin; address 0 stays unused, so that no buffer has the one of none.
ALIGNMENT = 64

_HEAD = b"\0asm\1\0\0\0"
_CUSTOM, _IMPORT, _GLOBAL, _EXPORT, _CODE, _DATA = 0, 2, 6, 7, 10, 11
#: Bytes of a LEB128 of 64 bits at most.
_LONGEST_NUMBER = 10
_FUNCTION = 0  # kind of an import, an export and a symbol
_SYMBOL_TABLE = 8
_UNDEFINED, _EXPLICIT_NAME = 0x10, 0x40
#: Relocations with an addend; those of memory are the first three: LEB128, signed LEB128, 32 bits.
_MEMORY_LEB, _MEMORY_SLEB, _MEMORY_I32 = 3, 4, 5
_WITH_ADDEND = (_MEMORY_LEB, _MEMORY_SLEB, _MEMORY_I32, 8, 9)
#: Relocations that stay right when data move: indices of functions, types and globals.
_OF_INDICES = (0, 6, 7)


class _Reader:
    """Reads ``content`` from byte ``at`` on."""

    def __init__(self, content: bytes, at: int = 0) -> None:
        self.content, self.at = content, at

    def byte(self) -> int:
        if self.at >= len(self.content):
            _refuse("it ends early")
        self.at += 1
        return self.content[self.at - 1]

    def number(self) -> int:
        """Reads an unsigned LEB128."""
        value = 0
        for shift in range(0, 7 * _LONGEST_NUMBER, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        return _refuse(f"a number has more than {_LONGEST_NUMBER} bytes")

    def bytes(self, count: int) -> bytes:
        if count > len(self.content) - self.at:
            _refuse("it ends early")
        self.at += count
        return self.content[self.at - count : self.at]

    def name(self) -> str:
        return self.bytes(self.number()).decode(errors="replace")


@record(frozen=True)
class _Section:
    id: int
    content: bytes

    @property
    def custom_name(self) -> str:
        """Returns the name of a custom section, "" for any other."""
        return _Reader(self.content).name() if self.id == _CUSTOM else ""

    @property
    def written(self) -> bytes:
        return bytes([self.id]) + _leb(len(self.content)) + self.content


def with_exports(module: bytes, functions: Iterable[str]) -> bytes:
    """Returns ``module``, an object of LLVM, with exports of ``functions`` under their own names.

    Raises ExecutableError for a function that it does not define, and for bytes that are no module.
    """
    sections = _sections(module)
    defined = _defined_functions(sections)
    exports = bytearray()
    names = list(functions)
    for name in names:
        if name not in defined:
            _refuse(f"it does not define {name!r}")
        exports += _text(name) + bytes([_FUNCTION]) + _leb(defined[name])
    export = _Section(_EXPORT, _leb(len(names)) + bytes(exports))
    before = [s for s in sections if _CUSTOM < s.id <= _GLOBAL]
    after = [s for s in sections if s.id == _CUSTOM or s.id > _EXPORT]
    return _HEAD + b"".join(s.written for s in (*before, export, *after))


def placed(module: bytes, base: int) -> bytes:
    """Returns ``module``, made by ``with_exports``, with its data at address ``base``, and without custom sections."""
    sections = _sections(module)
    moved = {
        "reloc.CODE": bytearray(_content(sections, _CODE)),
        "reloc.DATA": bytearray(_content(sections, _DATA)),
    }
    for section in sections:
        if section.custom_name in moved:
            _move(moved[section.custom_name], section, base)
    contents = {_CODE: bytes(moved["reloc.CODE"]), _DATA: _moved_data(bytes(moved["reloc.DATA"]), base)}
    rest = (_Section(s.id, contents.get(s.id, s.content)) for s in sections if s.id != _CUSTOM)
    return _HEAD + b"".join(section.written for section in rest)


def data_bytes(module: bytes) -> int:
    """Returns the bytes of memory that the data of ``module`` take, from where they begin."""
    return max((start + len(content) for start, content in _data(_content(_sections(module), _DATA))), default=0)


def imported_functions(module: bytes) -> list[str]:
    """Returns the names of the functions that ``module`` imports."""
    return [name for kind, name in _imports(_content(_sections(module), _IMPORT)) if kind == _FUNCTION]


def _sections(module: bytes) -> list[_Section]:
    if not module.startswith(_HEAD):
        _refuse("it does not begin as one of version 1 does")
    reader, sections = _Reader(module, len(_HEAD)), []
    while reader.at < len(module):
        sections.append(_Section(reader.byte(), reader.bytes(reader.number())))
    return sections


def _content(sections: Iterable[_Section], wanted: int) -> bytes:
    return next((s.content for s in sections if s.id == wanted), b"")


def _imports(content: bytes) -> Iterator[tuple[int, str]]:
    """Yields kind and name of each import; those of LLVM's objects are functions, memories, tables and globals."""
    reader = _Reader(content)
    for _ in range(reader.number() if content else 0):
        reader.name()
        name, kind = reader.name(), reader.byte()
        if kind == _FUNCTION:
            reader.number()
        elif kind == 3:  # a global: type and whether it changes
            reader.bytes(2)
        else:
            if kind == 1:  # a table: its element type
                reader.byte()
            for _ in range(1 + (reader.byte() & 1)):  # limits: least, and most where there is one
                reader.number()
        yield kind, name


def _defined_functions(sections: Iterable[_Section]) -> dict[str, int]:
    """Returns the index of each function that the symbol table names and the module defines."""
    linking = next((s.content for s in sections if s.custom_name == "linking"), None)
    if linking is None:
        _refuse("it has no symbols")
    reader = _Reader(linking)
    reader.name(), reader.number()  # of the section; the version
    found: dict[str, int] = {}
    while reader.at < len(linking):
        kind, content = reader.byte(), reader.bytes(reader.number())
        if kind == _SYMBOL_TABLE:
            found.update(_functions_of_table(_Reader(content)))
    return found


def _functions_of_table(table: _Reader) -> Iterator[tuple[str, int]]:
    for _ in range(table.number()):
        kind, flags = table.byte(), table.number()
        if kind == 1:  # data: name, and where it is unless it is another's
            table.name()
            if not flags & _UNDEFINED:
                table.number(), table.number(), table.number()
            continue
        index = table.number()
        name = "" if kind == 3 or (flags & _UNDEFINED and not flags & _EXPLICIT_NAME) else table.name()
        if kind == _FUNCTION and not flags & _UNDEFINED:
            yield name, index


def _move(content: bytearray, relocations: _Section, base: int) -> None:
    """Adds ``base`` to the addresses of memory in ``content``, which ``relocations`` list."""
    reader = _Reader(relocations.content)
    reader.name(), reader.number()  # of the custom section; the number of the section that it is about
    for _ in range(reader.number()):
        kind, at, _ = reader.byte(), reader.number(), reader.number()
        if kind in _WITH_ADDEND:
            reader.number()  # its sign does not matter: the object has the sum
        if kind in (_MEMORY_LEB, _MEMORY_SLEB):
            value = _Reader(bytes(content), at).number() + base
            content[at : at + 5] = _padded(value, is_signed=kind == _MEMORY_SLEB)
        elif kind == _MEMORY_I32:
            value = int.from_bytes(content[at : at + 4], "little") + base & 0xFFFFFFFF
            content[at : at + 4] = value.to_bytes(4, "little")
        elif kind not in _OF_INDICES:
            _refuse(f"it has a relocation of type {kind}")


def _moved_data(content: bytes, base: int) -> bytes:
    if not content:
        return content
    parts = [b"\0\x41" + _signed(start + base) + b"\x0b" + _leb(len(data)) + data for start, data in _data(content)]
    return _leb(len(parts)) + b"".join(parts)


def _data(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields address and content of each segment."""
    reader = _Reader(content)
    for _ in range(reader.number() if content else 0):
        if reader.byte() != 0 or reader.byte() != 0x41:  # of memory 0; i32.const
            _refuse("its data have no constant address")
        start = reader.number()  # it is not negative: what begins at 64 has a byte more
        reader.byte()  # end
        yield start, reader.bytes(reader.number())


def _leb(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def _signed(value: int) -> bytes:
    """Returns ``value``, which is not negative, as a signed LEB128 of 32 bits."""
    if value < 1 << 31:
        encoded = _leb(value)
        return encoded if encoded[-1] < 0x40 else encoded[:-1] + bytes([encoded[-1] | 0x80, 0])
    return _leb(value - (1 << 32) & (1 << 35) - 1)


def _padded(value: int, is_signed: bool) -> bytes:
    """Returns ``value``, an address of 32 bits, in five bytes; as a signed number it has its highest bit for a sign."""
    last = value >> 28 & 0xF
    last |= 0x70 if is_signed and last & 8 else 0
    return bytes([*(value >> shift & 0x7F | 0x80 for shift in (0, 7, 14, 21)), last])


def _text(name: str) -> bytes:
    encoded = name.encode()
    return _leb(len(encoded)) + encoded


def _refuse(reason: str) -> NoReturn:
    raise ExecutableError(f"this is no WebAssembly module that Landbridge can load: {reason}; compile the model again")
