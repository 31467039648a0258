"""What a way to the card gives the device: registers, an interrupt, and memory that both sides reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from landbridge_edu.engine import Interrupt


def _no_sync(offset: int, nbytes: int, side: Literal["cpu", "device"]) -> None:
    """Both sides see the same bytes."""


@dataclass(frozen=True)
class Transport:
    """The memory is ``nbytes`` from ``address`` on for this process; for the engine, chunks of ``chunk_bytes`` each.

    ``chunks`` has the address of each, as the engine must use it. ``sync`` makes what one side wrote to a range
    visible to ``side``; nothing need be done where it is ``coherent``.
    """

    name: str
    registers: int
    interrupt: Interrupt
    address: int
    nbytes: int
    chunks: tuple[int, ...]
    chunk_bytes: int
    coherent: bool
    physically_contiguous: bool | None
    sync: Callable[[int, int, Literal["cpu", "device"]], None] = _no_sync

    def extents(self, offset: int, nbytes: int) -> list[tuple[int, int]]:
        """Where the engine finds ``nbytes`` bytes from ``offset`` on, as (address, bytes)."""
        found: list[tuple[int, int]] = []
        while nbytes > 0:
            chunk, within = divmod(offset, self.chunk_bytes)
            part = min(nbytes, self.chunk_bytes - within)
            address = self.chunks[chunk] + within
            if found and sum(found[-1]) == address:
                found[-1] = (found[-1][0], found[-1][1] + part)
            else:
                found.append((address, part))
            offset, nbytes = offset + part, nbytes - part
        return found
