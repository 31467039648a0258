"""The words of a Program, after its records, through which code of the host gets the addresses of its operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from landbridge.executable.open_number import OpenNumber
from landbridge.vm.lent_memory import LentMemory
from landbridge.vm.own_memory import RowMemory
from landbridge.vm.program import BoundTensor, CopyEnd, HostTensor, OwnPart
from landbridge.vm.registers import Memory, RegisterPlace, Registers


class OperandWords:
    """The ``words`` from word ``first`` of the Program on, and the ``places`` to fill in when a tensor is bound.

    ``places``: of each of ``tensors`` that callers bind, a word that holds its address and the bytes to add to it.
    ``lent``: told of a device's memory that code of the host uses, and writes where ``may_write`` says so.
    """

    def __init__(
        self,
        first: int,
        tensors: int,
        registers: Registers,
        memory: Memory,
        lent: LentMemory,
        may_write: Callable[[RegisterPlace], bool],
    ) -> None:
        self.words: list[int] = []
        #: Of each loop, by number: words that hold addresses, and the bytes that a trip moves them by.
        self.moving: dict[int, list[tuple[int, int]]] = {}
        self.places: list[list[tuple[int, int]]] = [[] for _ in range(tensors)]
        self._first = first
        self._registers, self._memory, self._lent, self._may_write = registers, memory, lent, may_write
        self._tables: dict[tuple[object, ...], int] = {}

    @property
    def next(self) -> int:
        """The word that comes next."""
        return self._first + len(self.words)

    def host_tensor(self, place: RegisterPlace, user: str) -> HostTensor:
        """``place`` as a tensor of the host, whose address is a new argument."""
        return HostTensor(self.address(place, user), place.shape, place.dtype)

    def end(self, place: RegisterPlace) -> CopyEnd:
        """One end of a copy: by address in memory of the host, else the device's Tensor."""
        own = place.own
        if place.moves:
            return self.host_tensor(place, "a copy")
        if isinstance(own, RowMemory):
            return own.part(place.offset, place.shape, place.dtype, place.axis_separators)
        if own is None and place.address is not None:
            return self.host_tensor(place, "a copy")
        if own is None:
            return BoundTensor(cast(int, place.io), place.offset, place.shape, place.dtype)
        if own.tensor is None or (own.address is not None and self._memory.home(place.vdevice).is_host):
            return self.host_tensor(place, "a copy")
        part = OwnPart(own.tensor, place.offset, place.shape, place.dtype)
        is_open = any(isinstance(number, OpenNumber) for number in (place.offset, *place.shape))
        return part if is_open else part.tensor()

    def address(self, place: RegisterPlace, user: str) -> int:
        """Append an argument that holds the address of ``place``; its word."""
        word = self.next
        address = place.address
        if address is None:
            address = self._registers.address(place, user)
            if self._registers.is_lent(place):
                self._lent.add(self._memory.home(place.vdevice).kind, place, writes=self._may_write(place))
        self.words.append(address)
        self.bound(place, word)
        return word

    def bound(self, place: RegisterPlace, word: int) -> None:
        """``word`` of the Program holds the address of ``place``."""
        if place.io is not None:
            self.places[place.io].append((word, place.offset))
        for loop, stride in place.moves:
            self.moving.setdefault(loop, []).append((word, stride))

    def table(self, place: RegisterPlace, user: str) -> int | None:
        """The word where the row table of ``place`` begins; None where its address is its argument."""
        own = place.own
        if not isinstance(own, RowMemory):
            return None
        if not own.is_direct:
            self._registers.address(place, user)
        key = (id(own), place.offset, place.shape, place.axis_separators)
        if key not in self._tables:
            self._tables[key] = self.next
            self.words += own.table(place.offset, place.shape, place.dtype, place.axis_separators)
        return self._tables[key]
