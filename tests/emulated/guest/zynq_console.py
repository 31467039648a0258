"""A console where the kernel has no driver for one: the Zynq's second UART, written through ``/dev/mem``."""

import ctypes
import fcntl
import mmap
import os
import threading

_UART, _SLCR = 0xE000_1000, 0xF800_0000
_CONTROL, _FIFO = 0x00 // 4, 0x30 // 4
_ENABLE = 0x14  # the transmitter and the receiver
_UNLOCK, _KEY = 0x08 // 4, 0xDF0D


def open_console():
    """Returns a file to write to, and a function that waits until all of it has been shown, once nobody writes.

    Registers that turn the machine off, which the kernel will write, are unlocked too.
    """
    memory = os.open("/dev/mem", os.O_RDWR | os.O_SYNC)
    uart, slcr = (_registers(memory, address) for address in (_UART, _SLCR))
    os.close(memory)
    uart[_CONTROL] = _ENABLE
    slcr[_UNLOCK] = _KEY
    ends = os.pipe()
    # Not numbers 0 to 2, which may be free here: they will be the console.
    source, sink = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3) for end in ends)
    for end in ends:
        os.close(end)

    def show():
        while text := os.read(source, 4096):
            for letter in text:
                uart[_FIFO] = letter  # the emulated one is never full

    shows = threading.Thread(target=show, daemon=True)
    shows.start()
    return sink, shows.join


def _registers(memory, address):
    return (ctypes.c_uint32 * (mmap.PAGESIZE // 4)).from_buffer(mmap.mmap(memory, mmap.PAGESIZE, offset=address))
