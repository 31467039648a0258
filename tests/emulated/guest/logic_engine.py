"""The DMA engine of what plays the logic of the board's FPGA, as a driver sees it: ``tests/emulated/logic.py``."""

import ctypes
import mmap
import os
import time

WRITE_FRAME, READ = 1, 2
_REGISTERS = 0x3FF0_0000


class Engine:
    """Its registers, which begin with a command."""

    def __init__(self):
        file = os.open("/dev/mem", os.O_RDWR | os.O_SYNC)
        page = mmap.mmap(file, mmap.PAGESIZE, offset=_REGISTERS)
        os.close(file)
        self._registers = (ctypes.c_uint32 * 3).from_buffer(page)

    def start(self, command, address, nbytes):
        """Begin a transfer of ``nbytes`` at the physical ``address``."""
        self._registers[1], self._registers[2] = address, nbytes
        self._registers[0] = command

    def wait(self):
        """Returns when the transfer is done."""
        while self._registers[0]:
            time.sleep(0.001)
