"""Functions of a few instructions that libraries contain and no compiler makes."""

from __future__ import annotations

from collections.abc import Callable

from landbridge.records import record

#: Bytes of the functions that return an address, at most.
ADDRESS_BYTES = 16


@record(frozen=True)
class CodeForms:
    """Machine code for an offset of an image, which begins at an address that is a multiple of 4096.

    ``jump_with(at, value, function)``: code at offset ``at`` that passes the address of offset ``value`` as the first
    argument and jumps to offset ``function``. ``address_of(at, target)``: a function at ``at`` that returns the address
    of ``target``, less than 1 MiB away. ``address_of_data(at, data)``: the same for ``data`` up to 2 GiB away.
    ``data_relocations``: what a linker fills in where it places the data: for each the offset in
    ``address_of_data(0, 0 + data_offset)``, ELF's type and the addend; ``data_offset`` is the distance that leaves all
    of its bits 0. The addend of an OTHER_HALF is the offset of the first half. The last two functions have at most
    ADDRESS_BYTES.
    """

    jump_with: Callable[[int, int, int], bytes]
    address_of: Callable[[int, int], bytes]
    address_of_data: Callable[[int, int], bytes]
    data_relocations: tuple[tuple[int, int, int], ...]
    data_offset: int = 0
