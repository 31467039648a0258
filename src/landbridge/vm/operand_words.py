"""OperandWords: the words of a Program, after its records, that hold the addresses of operands for code of the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from landbridge.errors import BindError
from landbridge.executable.open_number import OpenNumber
from landbridge.shapes.physical import physical_shape
from landbridge.vm.borrowed_memory import BorrowedMemory
from landbridge.vm.owned_memory import RowMemory
from landbridge.vm.program import BoundTensor, CopyEnd, HostTensor, OwnedPart
from landbridge.vm.registers import Memory, RegisterLocation, Registers


class OperandWords:
    """The ``words`` from word ``first`` of the Program on, and the ``places`` to fill in when a tensor is bound.

    ``places``: for each of ``tensors`` that callers bind, the words that hold its address, each with the bytes to add.
    ``borrowed`` records device memory that code of the host uses, and writes where ``may_write`` says so.
    """

    def __init__(
        self,
        first: int,
        tensors: int,
        registers: Registers,
        memory: Memory,
        borrowed: BorrowedMemory,
        may_write: Callable[[RegisterLocation], bool],
    ) -> None:
        self.words: list[int] = []
        #: For each loop, by number: words that hold addresses, and the bytes that an iteration moves them by.
        self.moving: dict[int, list[tuple[int, int]]] = {}
        self.places: list[list[tuple[int, int]]] = [[] for _ in range(tensors)]
        self._first = first
        self._registers, self._memory, self._borrowed, self._may_write = registers, memory, borrowed, may_write
        self._tables: dict[tuple[object, ...], int] = {}
        #: The words where the row tables of inputs and outputs begin, by register.
        self.tables: dict[int, int] = {}

    @property
    def next(self) -> int:
        """Returns the number of the next word."""
        return self._first + len(self.words)

    def host_tensor(self, location: RegisterLocation, user: str) -> HostTensor:
        """Returns ``location`` as a tensor of the host, whose address is in a new argument word."""
        return HostTensor(self.address(location, user), location.shape, location.dtype)

    def end(self, location: RegisterLocation) -> CopyEnd:
        """Returns one end of a copy: its address word for host memory, else the device's Tensor."""
        owned = location.owned
        if location.moves:
            return self.host_tensor(location, "a copy")
        if isinstance(owned, RowMemory):
            return owned.part(location.offset, location.shape, location.dtype, location.axis_separators)
        if owned is None and location.address is not None:
            return self.host_tensor(location, "a copy")
        if owned is None:
            return BoundTensor(cast(int, location.io), location.offset, location.shape, location.dtype)
        if owned.tensor is None or (owned.address is not None and self._memory.binding(location.vdevice).is_host):
            return self.host_tensor(location, "a copy")
        part = OwnedPart(owned.tensor, location.offset, location.shape, location.dtype)
        is_open = any(isinstance(number, OpenNumber) for number in (location.offset, *location.shape))
        return part if is_open else part.tensor()

    def address(self, location: RegisterLocation, user: str) -> int:
        """Append an argument that holds the address of ``location``; returns its word."""
        word = self.next
        address = location.address
        if address is None:
            address = self._registers.address(location, user)
            if self._registers.is_borrowed(location):
                self._borrowed.add(
                    self._memory.binding(location.vdevice).kind, location, writes=self._may_write(location)
                )
        self.words.append(address)
        self.bound(location, word)
        return word

    def bound(self, location: RegisterLocation, word: int) -> None:
        """Record that ``word`` of the Program holds the address of ``location``."""
        if location.io is not None:
            self.places[location.io].append((word, location.offset))
        for loop, stride in location.moves:
            self.moving.setdefault(loop, []).append((word, stride))

    def table(self, location: RegisterLocation, user: str) -> int | None:
        """Returns the word where the row table of ``location`` begins; None where its address is its argument."""
        owned = location.owned
        if owned is None and location.axis_separators:
            return self._bound_table(location, user)
        if not isinstance(owned, RowMemory):
            return None
        if not owned.is_direct:
            self._registers.address(location, user)
        key = (owned, location.offset, location.shape, location.axis_separators)
        if key not in self._tables:
            self._tables[key] = self.next
            self.words += owned.table(location.offset, location.shape, location.dtype, location.axis_separators)
        return self._tables[key]

    def _bound_table(self, location: RegisterLocation, user: str) -> int:
        """Returns the word where the row table of an input or output begins, which is filled when it is bound."""
        binding, register = self._memory.binding(location.vdevice), cast(int, location.io)
        if not binding.is_direct:
            raise BindError(
                f"{user} uses tensor {location.name!r} in rows of {binding}, which code of the host cannot use in "
                "place; bind a device whose memory it can, or place the node elsewhere"
            )
        if register not in self.tables:
            self.tables[register] = self.next
            self.words += [0] * physical_shape(location.shape, location.axis_separators)[0]
        return self.tables[register]
