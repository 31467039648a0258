"""Memory for what the iterations of a loop give: it grows by more than an iteration needs, so that few iterations need
new."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import numpy as np

from landbridge.dtypes import numpy_dtype
from landbridge.errors import OutOfMemoryError
from landbridge.executable.parts import TensorSpec
from landbridge.memory import ledger
from landbridge.memory.host_array import address_of_known
from landbridge.records import record
from landbridge.tensor import Tensor
from landbridge.tensor.tensor import exported_array, over_new
from landbridge.vm.io_memory import IoMemory
from landbridge.vm.slot import SMALL_BYTES

#: The least bytes that memory is made for.
_LEAST = 1 << 10
#: Rows are given all of their memory at once where it takes no more bytes than this.
_ROWS_AT_ONCE = 1 << 20


@record(frozen=True, slots=True, eq=False)
class MemoryPiece:
    """``nbytes`` of memory at ``address``, which ``owner`` keeps alive: where it is new a Tensor or array of bytes."""

    address: int
    nbytes: int
    owner: Any

    def tensor(self, dtype: str, shape: tuple[int, ...]) -> Tensor:
        """A Tensor of that shape at the beginning, of memory that is new."""
        if isinstance(self.owner, Tensor):
            return Tensor(self.owner.storage, dtype, shape, None, self.owner.byte_offset)
        return over_new(np.ndarray(shape, numpy_dtype(dtype), self.owner), dtype, shape, self.address)


def new_piece(io: IoMemory, spec: TensorSpec, nbytes: int, rather: int) -> MemoryPiece:
    """``rather`` bytes for what fits ``spec``, or ``nbytes`` where there are not as many."""
    rather = max(rather, nbytes, _LEAST)
    if rather <= SMALL_BYTES:
        array = np.empty(rather, np.uint8)
        return MemoryPiece(address_of_known(array), rather, array)
    of_bytes = replace(spec, shape=(rather,), dtype="uint8", elements=())
    try:
        tensor = io.allocate(of_bytes)
    except OutOfMemoryError:
        if rather <= nbytes:
            raise
        tensor = io.allocate(replace(of_bytes, shape=(max(nbytes, 1),)))
    return MemoryPiece(tensor.data_address, tensor.nbytes, tensor)


class CarriedMemory:
    """What an iteration gives and the next one takes, ``spec``: it is in one of two pieces of memory, and goes to the
    other.

    ``now`` is where it is, at first the caller's memory.
    """

    def __init__(self, io: IoMemory, spec: TensorSpec, now: MemoryPiece) -> None:
        self.spec, self.now = spec, now
        self._io = io
        self._owned: list[MemoryPiece] = []

    def next_two(self, nbytes: int, count: int, *, is_last: bool) -> tuple[MemoryPiece, MemoryPiece]:
        """Where the next of ``count`` trips is to put it, and the one after that, then the next again, of at most
        ``nbytes``; ``is_last``: it grows no more after these."""
        fitting = [piece for piece in self._owned if piece.nbytes >= nbytes]
        free = [piece for piece in fitting if piece is not self.now]
        rather = nbytes if is_last else 2 * nbytes
        one = free[0] if free else new_piece(self._io, self.spec, nbytes, rather)
        rest = [piece for piece in fitting if piece is not one]
        other = rest[0] if rest else one if count == 1 else new_piece(self._io, self.spec, nbytes, rather)
        self._owned = [one, other]
        return one, other

    def extended(self, nbytes: int, used: int, *, is_last: bool) -> MemoryPiece:
        """Where all iterations are to have it, of at most ``nbytes``, who leave the first ``used`` as they are now."""
        now = self.now
        if now.nbytes < nbytes or all(now is not piece for piece in self._owned):
            self.now = new_piece(self._io, self.spec, nbytes, nbytes if is_last else 2 * nbytes)
            ledger.copy_array(
                _bytes_at(self.now.address, used), _bytes_at(now.address, used), cause="loop", tensor=self.spec.name,
                source="cpu:0", destination="cpu:0",
            )  # fmt: skip
        self._owned = [self.now, self.now]
        return self.now

    def took(self, count: int) -> None:
        """So many iterations were taken since ``next_two``."""
        if count:
            self.now = self._owned[1 - count % 2]


def _bytes_at(address: int, nbytes: int) -> np.ndarray[Any, Any]:
    return np.frombuffer(memoryview((ctypes.c_uint8 * nbytes).from_address(address)), np.uint8)


class CollectedRows:
    """Rows of iterations, one behind the other: ``count`` of them, of ``spec``, of which at most ``most`` will be."""

    def __init__(self, io: IoMemory, spec: TensorSpec, shape: tuple[int, ...], most: int | None) -> None:
        self._io, self._spec, self._shape, self._most = io, spec, shape, most
        self.nbytes = replace(spec, shape=shape).nbytes
        self.count = 0
        self._piece: MemoryPiece | None = None

    def address(self, more: int) -> int:
        """That of the next row, and of ``more`` in all."""
        needed = self.count + more
        piece = self._piece
        if piece is None or piece.nbytes < needed * self.nbytes:
            rather = 2 * needed
            if self._most is not None and (rather > self._most or self._most * self.nbytes <= _ROWS_AT_ONCE):
                rather = max(self._most, needed)
            grown = new_piece(self._io, self._spec, needed * self.nbytes, rather * self.nbytes)
            if piece is not None and self.count:
                ledger.copy_array(
                    self._rows(grown), self._rows(piece), cause="rows", tensor=self._spec.name,
                    source="cpu:0", destination="cpu:0",
                )  # fmt: skip
            piece = self._piece = grown
        return piece.address + self.count * self.nbytes

    def tensor(self) -> Tensor:
        """The rows."""
        if self._piece is None:
            self._piece = new_piece(self._io, self._spec, 0, 0)
        return self._piece.tensor(self._spec.dtype, (self.count, *self._shape))

    def _rows(self, piece: MemoryPiece) -> np.ndarray[Any, Any]:
        return exported_array(piece.tensor("uint8", (self.count * self.nbytes,)))
