"""ProgramArena: memory for the storages of programs that run one after the other, the instances of one Session."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from landbridge.errors import OutOfMemoryError
from landbridge.process.available_memory import is_address_space_free
from landbridge.tensor import Tensor

#: The largest piece that is taken at once where that many bytes may be needed: of memory that takes none of the
#: machine's until it is touched, and of other memory.
_AHEAD_LAZY, _AHEAD = 1 << 30, 64 << 20
#: The first piece of such memory where nothing says how many bytes may be needed: runs that need more take so long
#: that binding the program again for a larger piece does not count.
_RESERVED = 128 << 20


class ProgramArena:
    """One piece of memory for each storage of the programs, as large as the largest request so far.

    A piece is at once as large as any program will need where that is ``most`` and not too much. Otherwise a piece that
    is lazy, which takes no memory of the machine until it is touched, begins with as much as most programs will need,
    and is replaced by one of twice its size when it is outgrown, so that few of many growing sizes need a new one.
    ``generation`` counts how often a piece was outgrown; programs that were bound before keep what they had.
    """

    def __init__(self, most: Sequence[int | None] = ()) -> None:
        self._pieces: dict[int, Tensor] = {}
        self._scratch: dict[tuple[int, int], Tensor] = {}
        self._most = most
        self.generation = 0
        #: The bytes of the host that the machine was found to have for the pieces, touched or not; see MemoryCheck.
        self.checked_bytes = 0

    @property
    def pieces(self) -> list[int]:
        """Returns the bytes of each piece, by number."""
        return [self._pieces[number].nbytes for number in range(len(self._pieces))]

    @property
    def nbytes(self) -> int:
        """Returns the bytes of all pieces."""
        return sum(self.pieces)

    def take(self, number: int, nbytes: int, make: Callable[[int], Tensor], *, is_lazy: bool) -> Tensor:
        """Returns at least ``nbytes`` for storage ``number`` of a program; ``make`` allocates a new piece of that many
        bytes.
        """
        piece = self._pieces.get(number)
        if piece is None or piece.nbytes < nbytes:
            self.generation += piece is not None
            wanted = self._wanted(number, is_lazy, 0 if piece is None else piece.nbytes)
            piece = None
            self._pieces.pop(number, None)  # memory that nobody else uses may become part of the new piece
            self._pieces[number] = piece = _created(nbytes, wanted, make)
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

    def _wanted(self, number: int, is_lazy: bool, before: int) -> int:
        """Returns the bytes of a new piece for storage ``number``, if that is more than is requested; the piece that it
        replaces has ``before``.
        """
        most = self._most[number] if number < len(self._most) else 0
        if most is not None and most <= (_AHEAD_LAZY if is_lazy else _AHEAD):
            return most
        if not is_lazy:
            return 0
        if before:
            return 2 * before
        return _RESERVED if is_address_space_free() else 0


def _created(nbytes: int, wanted: int, make: Callable[[int], Tensor]) -> Tensor:
    if nbytes < wanted:
        try:
            return make(wanted)
        except OutOfMemoryError:  # a process may have a limit on the memory that it reserves
            pass
    return make(nbytes)
