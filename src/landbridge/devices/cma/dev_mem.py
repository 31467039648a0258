"""Memory at physical addresses that the kernel does not use, through ``/dev/mem``, where the user declares it."""

from __future__ import annotations

import mmap
import os
import re
from pathlib import Path

from landbridge.device.memory_provider import Caching
from landbridge.devices.cma.carve_out import CarveOut
from landbridge.devices.cma.source import Piece, unusable
from landbridge.errors import InputError, OutOfMemoryError

NODE = Path("/dev/mem")
#: ``ADDRESS+BYTES``, followed by ``,write_combined`` or ``,uncached`` where it is not mapped as registers.
VARIABLE = "LANDBRIDGE_DEV_MEM"
_DECLARED = re.compile(r"(0x[0-9a-fA-F]+|\d+)\+(0x[0-9a-fA-F]+|\d+)(?:,(device|write_combined|uncached))?")


class DevMem:
    """``nbytes`` bytes from physical ``address`` on, which must be reserved: nobody can check that they are.

    ``caching``: how this kernel maps them. As registers, the default, they have no host view: devices use them.
    """

    name = "dev_mem"
    unit = page_bytes = mmap.PAGESIZE
    cached = False
    physically_contiguous = True
    pinned = True
    by_name = True

    def __init__(self, address: int, nbytes: int, caching: Caching = Caching.DEVICE, node: Path = NODE) -> None:
        if address % mmap.PAGESIZE or nbytes % mmap.PAGESIZE or nbytes <= 0 or address < 0:
            raise InputError(
                f"{nbytes} bytes from {address:#x} on were stated as memory of {node}; give whole pages of "
                f"{mmap.PAGESIZE} bytes"
            )
        self.caching, self._node = caching, node
        self.capacity = self.max_bytes = nbytes
        self._address = address
        self._memory = CarveOut(node, os.O_SYNC, address, address, nbytes, caching, None)

    def missing(self) -> str | None:
        """Returns why it cannot be opened, or that this kernel does not map these addresses; None where it can
        be used.
        """
        if (why := unusable(self._node)) is not None:
            return why
        try:
            file = os.open(self._node, os.O_RDWR | os.O_SYNC | os.O_CLOEXEC)
        except OSError as error:
            return f"{self._node}: {error.strerror}; it takes CAP_SYS_RAWIO, and a kernel that is not locked down"
        try:
            mmap.mmap(file, mmap.PAGESIZE, offset=self._address).close()
        except OSError as error:
            return f"{self._node} does not map {self._address:#x}: {error.strerror}; {_STRICT}"
        finally:
            os.close(file)
        return None

    def allocate(self, nbytes: int, alignment: int) -> Piece:
        """Returns a part of the memory; raises OutOfMemoryError."""
        return self._memory.take(nbytes, alignment)


_STRICT = (
    "CONFIG_STRICT_DEVMEM lets nobody map memory that the kernel has; reserve it (memmap=, mem= or a device tree's "
    "reserved-memory), or use u-dma-buf"
)


class _Unstated:
    """A source without memory, because no address was declared."""

    name = "dev_mem"
    unit = page_bytes = mmap.PAGESIZE
    cached = False
    physically_contiguous = True
    pinned = True
    by_name = True
    capacity = max_bytes = 0

    def __init__(self, why: str) -> None:
        self._why = why

    def missing(self) -> str | None:
        """Returns what must be declared."""
        return self._why

    def allocate(self, nbytes: int, alignment: int) -> Piece:
        raise OutOfMemoryError(self._why)


def dev_mem(declared: str | None = None) -> DevMem | _Unstated:
    """Returns the memory that ``declared`` describes (None: the environment's ``LANDBRIDGE_DEV_MEM``)."""
    text = os.environ.get(VARIABLE, "") if declared is None else declared
    if not text:
        return _Unstated(f"{NODE}: {VARIABLE} is not set; ADDRESS+BYTES of reserved memory")
    found = _DECLARED.fullmatch(text)
    if found is None:
        return _Unstated(f"{VARIABLE} is {text!r}; legal: ADDRESS+BYTES[,device|write_combined|uncached]")
    try:
        return DevMem(int(found[1], 0), int(found[2], 0), Caching(found[3] or "device"))
    except InputError as error:
        return _Unstated(f"{VARIABLE}: {error}")
