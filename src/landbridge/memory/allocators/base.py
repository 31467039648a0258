"""The interface of allocators, and what they hand out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from landbridge.device.device import Device
from landbridge.device.space import Region


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """``nbytes`` usable bytes from ``region`` on; owned by whoever allocated it until it is deallocated."""

    region: Region
    nbytes: int


class Allocator(Protocol):
    """A source of blocks of one scope of one device. Adaptors are allocators around another one."""

    @property
    def device(self) -> Device:
        """Where the blocks lie."""

    @property
    def scope(self) -> str:
        """The memory scope of the blocks."""

    def allocate(self, nbytes: int, alignment: int) -> Block:
        """At least ``nbytes`` bytes whose start is a multiple of ``alignment``; raises OutOfMemoryError."""

    def deallocate(self, block: Block) -> None:
        """Take ``block`` back after its last use; callable from any thread, finalizers included."""


@runtime_checkable
class Trimmable(Protocol):
    """An allocator that keeps what is returned."""

    def trim(self) -> int:
        """Give back what is held unused; returns the bytes given back."""


def round_up(value: int, multiple: int) -> int:
    """The smallest multiple of ``multiple`` that is at least ``value``."""
    return -(-value // multiple) * multiple
