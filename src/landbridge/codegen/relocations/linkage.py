"""The description of an instruction set for linking."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

from landbridge.records import record


class Through(Enum):
    """How a reference reaches its symbol: directly, or through a slot or stub."""

    #: The symbol's own address: it must be in the image.
    NOTHING = "nothing"
    #: The same; a stub that jumps on, where the symbol is imported.
    STUB = "stub"
    #: A slot that holds the symbol's address.
    SLOT = "slot"
    #: The place is itself a slot of eight bytes, which the loader fills.
    LOADER = "loader"


@record(frozen=True)
class Relocation:
    """One type of relocation.

    ``write(code, place, target)`` puts the reference to image offset ``target`` at image offset ``place``; it raises
    CodegenError when it does not reach. An image begins at an address that is a multiple of 4096, so that the low bits
    of offsets are those of addresses. For a type that reaches its symbol through a slot, ``direct`` is the type that
    reaches the slot itself.
    """

    through: Through
    write: Callable[[bytearray, int, int], None]
    direct: int = 0


@record(frozen=True)
class Linkage:
    """An instruction set: ELF's number of it, its relocation types, its stubs and the largest page it runs with.

    ``stub`` is code that jumps to the address in a slot, once its ``stub_references`` reach the slot: of each the
    offset in the stub, the relocation type and the addend.
    """

    isa: str
    machine: int
    page: int
    relocations: Mapping[int, Relocation]
    stub: bytes
    stub_references: tuple[tuple[int, int, int], ...]
