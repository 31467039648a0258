"""Memory for the results of loop iterations, which grows ahead of need, so that few iterations allocate."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import numpy as np

from landbridge.dtypes import stored_dtype
from landbridge.errors import OutOfMemoryError
from landbridge.executable.parts import TensorSpec
from landbridge.memory import ledger
from landbridge.memory.host_array import address_of_known
from landbridge.records import record
from landbridge.tensor import Tensor
from landbridge.tensor.tensor import exported_array, over_new
from landbridge.vm.io_memory import IoMemory
from landbridge.vm.slot import SMALL_BYTES

#: The least bytes of an allocation.
_LEAST = 1 << 10
#: Rows get all of their memory at once where it takes no more bytes than this.
_ROWS_AT_ONCE = 1 << 20


@record(frozen=True, slots=True, eq=False)
class MemoryPiece:
    """``nbytes`` of memory at ``address``, which ``owner`` keeps alive: for new memory a Tensor or array of bytes."""

    address: int
    nbytes: int
    owner: Any

    def tensor(self, dtype: str, shape: tuple[int, ...]) -> Tensor:
        """Returns a Tensor of that shape at the beginning of the piece, which must be new memory."""
        if isinstance(self.owner, Tensor):
            return Tensor(self.owner.storage, dtype, shape, None, self.owner.byte_offset)
        return over_new(np.ndarray(shape, stored_dtype(dtype), self.owner), dtype, shape, self.address)


def new_piece(io: IoMemory, spec: TensorSpec, nbytes: int, rather: int) -> MemoryPiece:
    """Returns a piece of ``rather`` bytes for what fits ``spec``, or of ``nbytes`` where so many are not available."""
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
    """A carried value ``spec`` in one of two pieces of memory; each iteration writes it to the other one.

    ``now`` is the piece with the current value, at first the caller's memory.
    """

    def __init__(self, io: IoMemory, spec: TensorSpec, now: MemoryPiece) -> None:
        self.spec, self.now = spec, now
        self._io = io
        self._owned: list[MemoryPiece] = []

    def next_two(self, nbytes: int, count: int, *, is_last: bool) -> tuple[MemoryPiece, MemoryPiece]:
        """Returns the two pieces that the next ``count`` iterations write alternately, first one first.

        Each holds at most ``nbytes``. ``is_last``: the value does not grow after these iterations.
        """
        fitting = [piece for piece in self._owned if piece.nbytes >= nbytes]
        free = [piece for piece in fitting if piece is not self.now]
        rather = nbytes if is_last else 2 * nbytes
        one = free[0] if free else new_piece(self._io, self.spec, nbytes, rather)
        rest = [piece for piece in fitting if piece is not one]
        other = rest[0] if rest else one if count == 1 else new_piece(self._io, self.spec, nbytes, rather)
        self._owned = [one, other]
        return one, other

    def extended(self, nbytes: int, used: int, *, is_last: bool) -> MemoryPiece:
        """Returns the piece where all iterations have the value, which takes at most ``nbytes``.

        They leave its first ``used`` bytes as they are now. ``is_last``: the value does not grow after these
        iterations.
        """
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
        """Record that ``count`` iterations ran since ``next_two``."""
        if count:
            self.now = self._owned[1 - count % 2]


def _bytes_at(address: int, nbytes: int) -> np.ndarray[Any, Any]:
    return np.frombuffer(memoryview((ctypes.c_uint8 * nbytes).from_address(address)), np.uint8)


class CollectedRows:
    """The rows of iterations, one after the other: ``count`` so far, of ``spec``, of at most ``most``."""

    def __init__(self, io: IoMemory, spec: TensorSpec, shape: tuple[int, ...], most: int | None) -> None:
        self._io, self._spec, self._shape, self._most = io, spec, shape, most
        self.nbytes = replace(spec, shape=shape).nbytes
        self.count = 0
        self._piece: MemoryPiece | None = None

    def address(self, more: int) -> int:
        """Returns the address of the next row, with capacity for ``more`` rows."""
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
        """Returns the rows."""
        if self._piece is None:
            self._piece = new_piece(self._io, self._spec, 0, 0)
        return self._piece.tensor(self._spec.dtype, (self.count, *self._shape))

    def _rows(self, piece: MemoryPiece) -> np.ndarray[Any, Any]:
        return exported_array(piece.tensor("uint8", (self.count * self.nbytes,)))
