"""The card as Linux shows it: which driver has it, its configuration space, memory maps."""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path

from landbridge.errors import DeviceError

_CARDS = Path("/sys/bus/pci/devices")
_VENDOR, _DEVICE = "0x1234", "0x11e8"
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_MAP_FIXED = 0x10


def cards() -> list[Path]:
    """The folders of the cards in this machine."""
    return sorted(
        card
        for card in (_CARDS.iterdir() if _CARDS.exists() else ())
        if ((card / "vendor").read_text().strip(), (card / "device").read_text().strip()) == (_VENDOR, _DEVICE)
    )


def give_to(card: Path, driver: str) -> None:
    """Have the kernel's ``driver`` take ``card``."""
    if (card / "driver").exists() and (card / "driver").resolve().name == driver:
        return
    (card / "driver_override").write_text(driver)
    if (card / "driver").exists():
        (card / "driver" / "unbind").write_text(card.name)
    Path("/sys/bus/pci/drivers_probe").write_text(card.name)
    if not (card / "driver").exists():
        raise DeviceError(f"the driver {driver} did not take {card.name}; is its module loaded?")


def map_file(fd: int, nbytes: int, offset: int = 0, at: int | None = None) -> int:
    """Map ``nbytes`` of ``fd`` readable and writable, shared, over what is mapped ``at`` where one says; the address.

    For the life of the process: a device's arena is given back by its end.
    """
    flags = mmap.MAP_SHARED | (_MAP_FIXED if at is not None else 0)
    address = _libc.mmap(at, nbytes, mmap.PROT_READ | mmap.PROT_WRITE, flags, fd, offset)
    if address in (None, ctypes.c_void_p(-1).value):
        raise DeviceError(f"cannot map {nbytes} bytes: {os.strerror(ctypes.get_errno())}")
    return int(address)


def reserve(nbytes: int, alignment: int) -> int:
    """A range of addresses that nothing is mapped at and nobody else gets, aligned."""
    taken = _libc.mmap(None, nbytes + alignment, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    return -(-int(taken) // alignment) * alignment
