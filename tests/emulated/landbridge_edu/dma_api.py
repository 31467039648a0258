"""The card by the kernel's DMA API, which the module ``edu_dma`` gives to this process.

Where the kernel bounces (``swiotlb=force``), card and host see different bytes until one synchronizes.
"""

from __future__ import annotations

import fcntl
import os
import select
import struct
from pathlib import Path
from typing import Literal

from landbridge_edu.pci import give_to, map_file
from landbridge_edu.transport import Transport

_CHUNKS, _CHUNK_BYTES = 16, 256 << 10
_ADDRESSES = 2 << 30 | 8 * _CHUNKS << 16 | ord("e") << 8 | 1  # _IOR('e', 1, __u64[CHUNKS])
_SYNC = 1 << 30 | 24 << 16 | ord("e") << 8 | 2  # _IOW('e', 2, struct edu_sync)


class DmaApiInterrupt:
    """Reads of ``/dev/edu_dma``."""

    def __init__(self, file: int) -> None:
        self._file = file

    def wait(self, timeout: float) -> bool:
        ready, _, _ = select.select([self._file], [], [], timeout)
        if ready:
            os.read(self._file, 4)
        return bool(ready)

    def rearm(self) -> None:
        """Messages need none."""


def open_dma_api(card: Path) -> Transport:
    """``card`` with the memory of the module, in chunks that lie apart for the card."""
    give_to(card, "edu_dma")
    with (card / "resource0").open("r+b") as bar:
        registers = map_file(bar.fileno(), 1 << 20)
    file = os.open("/dev/edu_dma", os.O_RDWR)
    nbytes = _CHUNKS * _CHUNK_BYTES
    chunks = struct.unpack(f"<{_CHUNKS}Q", fcntl.ioctl(file, _ADDRESSES, bytes(8 * _CHUNKS)))

    def sync(offset: int, nbytes: int, side: Literal["cpu", "device"]) -> None:
        fcntl.ioctl(file, _SYNC, struct.pack("<QQII", offset, nbytes, side == "device", 0))

    return Transport(
        "the DMA API",
        registers,
        DmaApiInterrupt(file),
        map_file(file, nbytes),
        nbytes,
        chunks,
        _CHUNK_BYTES,
        coherent=False,
        physically_contiguous=False,
        sync=sync,
    )
