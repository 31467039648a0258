"""The card by UIO, without an IOMMU: its engine is given physical addresses, of huge pages.

A huge page is contiguous and, while it is mapped and locked, does not move on a machine that does not compact huge
pages; nothing promises that, so that this is for a machine of one's own.
"""

from __future__ import annotations

import ctypes
import os
import select
import struct
from pathlib import Path

from landbridge_edu.engine import ADDRESS_BITS
from landbridge_edu.pci import give_to, map_file, reserve
from landbridge_edu.transport import Transport

from landbridge.errors import DeviceError

_PAGE = 2 << 20
_COMMAND, _BUS_MASTER, _INTX_OFF = 4, 1 << 2, 1 << 10


class UioInterrupt:
    """The blocking read of ``/dev/uioN``; the kernel's driver masks the line until ``rearm``."""

    def __init__(self, card: Path) -> None:
        (name,) = (node.name for node in (card / "uio").iterdir())
        self._file = os.open(f"/dev/{name}", os.O_RDWR)
        self._config = os.open(card / "config", os.O_RDWR)
        (command,) = struct.unpack("<H", os.pread(self._config, 2, _COMMAND))
        self._command = (command | _BUS_MASTER) & ~_INTX_OFF
        self.rearm()

    def wait(self, timeout: float) -> bool:
        ready, _, _ = select.select([self._file], [], [], timeout)
        if ready:
            os.read(self._file, 4)
        return bool(ready)

    def rearm(self) -> None:
        os.pwrite(self._config, struct.pack("<H", self._command), _COMMAND)


def open_uio(card: Path, nbytes: int) -> Transport:
    """``card`` with ``nbytes`` of memory in huge pages that follow each other."""
    give_to(card, "uio_pci_generic")
    with (card / "resource0").open("r+b") as bar:
        registers = map_file(bar.fileno(), 1 << 20)
    address, bus_address = _adjacent_huge_pages(nbytes // _PAGE)
    interrupt = UioInterrupt(card)
    return Transport(
        "uio", registers, interrupt, address, nbytes, (bus_address,), nbytes, coherent=True, physically_contiguous=True
    )


def _adjacent_huge_pages(count: int) -> tuple[int, int]:
    """``count`` huge pages that follow each other below the engine's limit: where this process and the engine see them.

    More pages are taken than are wanted, for a run to be among them; the others go back.
    """
    Path("/proc/sys/vm/nr_hugepages").write_text("64")
    found = int(Path("/proc/sys/vm/nr_hugepages").read_text())
    file = os.memfd_create("edu", 0x4 | 21 << 26)  # MFD_HUGETLB, of 2 MiB
    os.ftruncate(file, found * _PAGE)
    everything = map_file(file, found * _PAGE)
    lies = {}  # page of the file by physical address
    with open("/proc/self/pagemap", "rb") as pagemap:  # noqa: PTH123  sought in
        for page in range(found):
            ctypes.memset(everything + page * _PAGE, 0, 1)
            pagemap.seek((everything + page * _PAGE) // 4096 * 8)
            (entry,) = struct.unpack("<Q", pagemap.read(8))
            lies[(entry & (1 << 55) - 1) * 4096] = page
    legal = [first for first in sorted(lies) if first and first + count * _PAGE <= 1 << ADDRESS_BITS]
    first = next((a for a in legal if all(a + i * _PAGE in lies for i in range(count))), None)
    if first is None:
        raise DeviceError(f"of {found} huge pages no {count} follow each other below {ADDRESS_BITS} bits")
    arena = reserve(count * _PAGE, _PAGE)
    for i in range(count):
        map_file(file, _PAGE, lies[first + i * _PAGE] * _PAGE, at=arena + i * _PAGE)
    return arena, first
