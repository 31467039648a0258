"""The card's registers and its DMA engine."""

from __future__ import annotations

import ctypes
from typing import Literal, Protocol

from landbridge.errors import DeviceError

_IDENTITY, _ALIVE = 0x00, 0x04
_IRQ_STATUS, _IRQ_ACKNOWLEDGE = 0x24, 0x64
_DMA_SOURCE, _DMA_TARGET, _DMA_COUNT, _DMA_COMMAND = 0x80, 0x88, 0x90, 0x98
_START, _FROM_CARD, _INTERRUPT = 1, 2, 4
_DMA_DONE = 0x100
_TIMEOUT = 30.0  # seconds; a transfer takes the card 0.1
#: Where the engine sees the memory of the card, and how much is used: QEMU takes a transfer that ends with the 4096th
#: byte for one that leaves it.
CARD_MEMORY = 0x40000
CARD_BYTES = 4096 - 64
#: The engine reaches this many address bits of the machine.
ADDRESS_BITS = 28


class Interrupt(Protocol):
    """The card's interrupt as a transport gives it."""

    def wait(self, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds for the next one; whether it came."""

    def rearm(self) -> None:
        """Let the next one through; the card's own cause has been acknowledged."""


class Engine:
    """Registers at host address ``registers``; one transfer at a time, by one thread."""

    def __init__(self, registers: int, interrupt: Interrupt) -> None:
        self._registers = registers
        self._interrupt = interrupt
        identity = self._read(_IDENTITY)
        self._write(_ALIVE, 0x12345678)
        if identity & 0xFF != 0xED or self._read(_ALIVE) != 0x12345678 ^ 0xFFFFFFFF:
            raise DeviceError(f"no edu card answers: its identity reads {identity:#x}, and 0x...ed is meant")

    @property
    def version(self) -> str:
        """Of the card, "major.minor"."""
        identity = self._read(_IDENTITY)
        return f"{identity >> 24}.{identity >> 16 & 0xFF}"

    def transfer(self, machine_address: int, card_offset: int, nbytes: int, direction: Literal["to", "from"]) -> None:
        """Move bytes between the machine's memory and the card's, and wait for the interrupt that says so.

        ``machine_address`` is the engine's: physical, or what an IOMMU translates. Raises DeviceError when no
        interrupt comes.
        """
        card = CARD_MEMORY + card_offset
        source, target = (machine_address, card) if direction == "to" else (card, machine_address)
        for register, value in ((_DMA_SOURCE, source), (_DMA_TARGET, target), (_DMA_COUNT, nbytes)):
            ctypes.c_uint64.from_address(self._registers + register).value = value
        command = _START | _INTERRUPT | (_FROM_CARD if direction == "from" else 0)
        ctypes.c_uint64.from_address(self._registers + _DMA_COMMAND).value = command
        while True:
            came = self._interrupt.wait(_TIMEOUT)
            status = self._read(_IRQ_STATUS)
            self._write(_IRQ_ACKNOWLEDGE, status)
            self._interrupt.rearm()
            if status & _DMA_DONE:
                return
            if not came:
                raise DeviceError(f"edu: no interrupt for a transfer of {nbytes} bytes in {_TIMEOUT} s")

    def _read(self, register: int) -> int:
        return ctypes.c_uint32.from_address(self._registers + register).value

    def _write(self, register: int, value: int) -> None:
        ctypes.c_uint32.from_address(self._registers + register).value = value
