"""What plays the logic of a board's FPGA: a DMA engine that works on the emulated machine's physical memory.

Its registers lie in a page of that memory which the machine's kernel leaves alone. A program there writes an address, a
number of bytes and a command; the command is 0 again once it is done.
"""

from __future__ import annotations

import mmap
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

REGISTERS = 0x3FF0_0000
#: The command, the physical address and the number of bytes.
_REGISTERS = struct.Struct("<III")
_WRITE_FRAME, _READ = 1, 2
_POLL_SECONDS = 0.005


class Logic:
    """The engine, on the machine whose memory is the file ``memory``; it writes ``frames``, in order.

    ``read``: the bytes of each transfer out of the memory, in order. ``wrong``: why a transfer was refused, or None.
    """

    def __init__(self, memory: Path, frames: Iterator[bytes]) -> None:
        self.read: list[bytes] = []
        self.wrong: str | None = None
        self._frames = frames
        with memory.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Logic:
        self._memory[REGISTERS : REGISTERS + _REGISTERS.size] = bytes(_REGISTERS.size)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _serve(self) -> None:
        while not self._ended.wait(_POLL_SECONDS):
            command, address, nbytes = _REGISTERS.unpack_from(self._memory, REGISTERS)
            if command:
                self._transfer(command, address, nbytes)
                self._memory[REGISTERS : REGISTERS + 4] = bytes(4)  # after the bytes themselves

    def _transfer(self, command: int, address: int, nbytes: int) -> None:
        if address == 0 or address + nbytes > len(self._memory):
            self.wrong = f"{nbytes} bytes at {address:#x} are no memory of the board"
        elif command == _READ:
            self.read.append(self._memory[address : address + nbytes])
        elif command == _WRITE_FRAME and len(frame := next(self._frames, b"")) == nbytes:
            self._memory[address : address + nbytes] = frame
        else:
            self.wrong = f"command {command} for {nbytes} bytes"
