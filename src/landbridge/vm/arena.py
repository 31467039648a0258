"""ProgramArena: memory for the storages of programs that run one after the other, the instances of one Session."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from landbridge.errors import OutOfMemoryError
from landbridge.tensor import Tensor

#: The largest piece that is taken at once where that many bytes may be needed: of the host, which gives pages when they
#: are touched, and of devices.
_AHEAD_HOST, _AHEAD_DEVICE = 1 << 30, 64 << 20


class ProgramArena:
    """One piece of memory for each storage of the programs, as large as the largest request so far.

    A piece is at once as large as any program will need where that is ``most`` and not too much. Otherwise a piece of
    the host that is outgrown is replaced by one of twice its size, so that few of many growing sizes need a new one.
    ``generation`` counts how often a piece was outgrown; programs that were bound before keep what they had.
    """

    def __init__(self, most: Sequence[int | None] = ()) -> None:
        self._pieces: dict[int, Tensor] = {}
        self._scratch: dict[tuple[int, int], Tensor] = {}
        self._most = most
        self.generation = 0

    @property
    def pieces(self) -> list[int]:
        """Returns the bytes of each piece, by number."""
        return [self._pieces[number].nbytes for number in range(len(self._pieces))]

    @property
    def nbytes(self) -> int:
        """Returns the bytes of all pieces."""
        return sum(self.pieces)

    def take(self, number: int, nbytes: int, make: Callable[[int], Tensor], *, of_host: bool) -> Tensor:
        """Returns at least ``nbytes`` for storage ``number`` of a program; ``make`` allocates a new piece of that many
        bytes.
        """
        piece = self._pieces.get(number)
        if piece is None or piece.nbytes < nbytes:
            self.generation += piece is not None
            most, ahead = self._most_of(number), _AHEAD_HOST if of_host else _AHEAD_DEVICE
            if (most is None or most > ahead) and piece is not None and of_host:
                most = 2 * piece.nbytes
            piece = None
            self._pieces.pop(number, None)  # memory that nobody else uses may become part of the new piece
            self._pieces[number] = piece = _created(nbytes, most, make, ahead)
        return piece

    def scratch(self, vdevice: int, number: int, nbytes: int, make: Callable[[int], Tensor]) -> Tensor:
        """Returns at least ``nbytes`` for scratch buffer ``number`` of kernels on ``vdevice``, which holds nothing
        between Calls; ``make`` allocates a new piece of that many bytes.

        Programs that were bound before keep a piece that is outgrown. The next one is at least twice its size.
        """
        key = vdevice, number
        piece = self._scratch.get(key)
        if piece is None or piece.nbytes < nbytes:
            self._scratch[key] = piece = make(nbytes if piece is None else max(nbytes, 2 * piece.nbytes))
        return piece

    def _most_of(self, number: int) -> int | None:
        return self._most[number] if number < len(self._most) else None


def _created(nbytes: int, most: int | None, make: Callable[[int], Tensor], ahead: int) -> Tensor:
    if most is not None and nbytes < most <= ahead:
        try:
            return make(most)
        except OutOfMemoryError:  # a process may have a limit on the memory that it reserves
            pass
    return make(nbytes)
