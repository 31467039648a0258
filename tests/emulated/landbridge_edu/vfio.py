"""The card by VFIO, behind an IOMMU: its engine is given addresses of our choice, which are no physical ones.

Numbers and structures are of Linux's include/uapi/linux/vfio.h.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import select
import struct
from pathlib import Path

from landbridge_edu.pci import give_to, map_file
from landbridge_edu.transport import Transport

from landbridge.errors import DeviceError

_BASE = ord(";") << 8 | 100
_SET_IOMMU, _MAP_DMA = _BASE + 2, _BASE + 13
_GROUP_SET_CONTAINER, _GROUP_GET_DEVICE = _BASE + 4, _BASE + 6
_DEVICE_GET_REGION, _DEVICE_SET_IRQS = _BASE + 8, _BASE + 10
_TYPE1 = 1
_CONFIG_REGION, _MSI = 7, 1
_COMMAND, _BUS_MASTER = 4, 1 << 2
#: Where the engine is to see the memory: below its 28 bits, and not where the machine has it.
_IOVA = 0x0ABC_0000


class VfioInterrupt:
    """A message-signalled interrupt, which the kernel counts into an eventfd."""

    def __init__(self, device: int) -> None:
        self.fd = os.eventfd(0, os.EFD_CLOEXEC)
        # argsz, flags (DATA_EVENTFD, ACTION_TRIGGER), index, start, count, data
        fcntl.ioctl(device, _DEVICE_SET_IRQS, struct.pack("<IIIIIi", 24, 1 << 2 | 1 << 5, _MSI, 0, 1, self.fd))

    def wait(self, timeout: float) -> bool:
        ready, _, _ = select.select([self.fd], [], [], timeout)
        if ready:
            os.eventfd_read(self.fd)
        return bool(ready)

    def rearm(self) -> None:
        """Messages need none."""


def open_vfio(card: Path, nbytes: int) -> Transport:
    """``card`` with ``nbytes`` of ordinary pages, which the kernel pins and the IOMMU shows to the card."""
    if not (card / "iommu_group").exists():
        raise DeviceError(f"{card.name} stands behind no IOMMU; boot with intel_iommu=on")
    give_to(card, "vfio-pci")
    container = os.open("/dev/vfio/vfio", os.O_RDWR)
    group = os.open(f"/dev/vfio/{(card / 'iommu_group').resolve().name}", os.O_RDWR)
    fcntl.ioctl(group, _GROUP_SET_CONTAINER, struct.pack("<i", container))
    fcntl.ioctl(container, _SET_IOMMU, _TYPE1)
    device = fcntl.ioctl(group, _GROUP_GET_DEVICE, bytearray(card.name.encode() + b"\0"))
    file = os.memfd_create("edu")
    os.ftruncate(file, nbytes)
    address = map_file(file, nbytes)
    # argsz, flags (READ, WRITE), vaddr, iova, size
    fcntl.ioctl(container, _MAP_DMA, struct.pack("<IIQQQ", 32, 3, address, _IOVA, nbytes))
    registers = map_file(device, *_region(device, 0))
    _, config = _region(device, _CONFIG_REGION)
    (command,) = struct.unpack("<H", os.pread(device, 2, config + _COMMAND))
    os.pwrite(device, struct.pack("<H", command | _BUS_MASTER), config + _COMMAND)
    interrupt = VfioInterrupt(device)
    return Transport(
        "vfio", registers, interrupt, address, nbytes, (_IOVA,), nbytes, coherent=True, physically_contiguous=None
    )


def _region(device: int, index: int) -> tuple[int, int]:
    """Bytes of a region of the card, and where they lie in the device's file."""
    information = struct.pack("<IIIIQQ", 32, 0, index, 0, 0, 0)
    _, _, _, _, nbytes, offset = struct.unpack("<IIIIQQ", fcntl.ioctl(device, _DEVICE_GET_REGION, information))
    return nbytes or mmap.PAGESIZE, offset
