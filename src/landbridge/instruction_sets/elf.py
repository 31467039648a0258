"""How objects of an instruction set are linked, and what ELF calls it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from enum import Enum

from landbridge.records import record


class Through(Enum):
    """How a reference reaches its symbol: directly, or through a slot or stub; or what it is, where it has none."""

    #: The symbol's own address: it must be in the image.
    NOTHING = "nothing"
    #: The same; a stub that jumps on, where the symbol is imported.
    STUB = "stub"
    #: A slot that holds the symbol's address.
    SLOT = "slot"
    #: The place is itself a slot of an address, which the loader fills.
    LOADER = "loader"
    #: The other half of an address: the symbol is where its first half is, a reference that is resolved by itself.
    OTHER_HALF = "other half"
    #: A hint to linkers, which refers to nothing.
    NO_SYMBOL = "no symbol"


@record(frozen=True)
class Relocation:
    """One type of relocation.

    ``write(code, place, target)`` puts the reference to image offset ``target`` at image offset ``place``; it raises
    CodegenError when it does not reach. An image begins at an address that is a multiple of 4096, so that the low bits
    of offsets are those of addresses. For a type that reaches its symbol through a slot, ``direct`` is the type that
    reaches the slot itself. ``read(code, place)`` returns the addend that a compiler left at ``place``, for an
    instruction set whose objects have it there, and ``write_addend(code, place, addend)`` puts one there; None where
    their tables have it. The ``write`` of an OTHER_HALF gets the target that is as many bytes away from ``place`` as
    the address is from the first half.
    """

    through: Through
    write: Callable[[bytearray, int, int], None]
    direct: int = 0
    read: Callable[[bytearray, int], int] | None = None
    write_addend: Callable[[bytearray, int, int], None] | None = None


@record(frozen=True)
class Elf:
    """ELF's numbers of an instruction set, its relocation types and its stubs.

    ``page``: bytes of the largest page of memory that Linux has on it, as what gets other permissions than its
    neighbours lies on pages of that size. ``absolute`` is the type of relocation to a symbol's address, and
    ``relative`` that of the dynamic one to the load address plus an addend. ``stub`` is code that jumps to the address
    in a slot, once its ``stub_references`` reach the slot: of each the offset in the stub, the relocation type and the
    addend, which for an OTHER_HALF is the offset of the first half. ``bits`` of an address, 64 or 32: words of programs
    have 64 in either case, of which an address of 32 is the first half. ``libraries``: those beside the C library from
    which compilers take functions.
    ``addends_in_place``: relocation tables have no addends (REL). ``flags`` of a file's header, and the content of the
    section ``attributes_name`` by which linkers compare calling conventions, are what ELF for this instruction set
    says. ``code_symbol``: the local symbol that marks where code begins, for disassemblers.
    """

    machine: int
    page: int
    relocations: Mapping[int, Relocation]
    stub: bytes
    stub_references: tuple[tuple[int, int, int], ...]
    absolute: int = 0
    relative: int = 0
    bits: int = 64
    libraries: tuple[str, ...] = ()
    addends_in_place: bool = False
    flags: int = 0
    attributes_name: str = ""
    attributes: bytes = b""
    code_symbol: str = ""

    @property
    def address(self) -> struct.Struct:
        """Returns the form of an address in memory."""
        return struct.Struct("<I" if self.bits == 32 else "<Q")
