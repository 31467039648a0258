"""OpenProgram: one of the programs of an open Executable, and the memory that its instances share."""

from __future__ import annotations

from collections.abc import Mapping

from landbridge.executable.executable import Executable
from landbridge.executable.instance import Numbers, dimensions, instance
from landbridge.executable.instructions import storages
from landbridge.sizes.size import Extent
from landbridge.vm.arena import ProgramArena


class OpenProgram:
    """``executable``, whose ``main`` it is, with its open ``dimensions`` by name."""

    def __init__(self, executable: Executable) -> None:
        main = executable.main
        self.executable = executable
        self.dimensions = dimensions(main)
        self.arena = ProgramArena(
            [_most(storage.nbytes) for storage in storages(main.instructions) if not storage.shape]
        )
        self._numbers = Numbers()

    def at(self, values: Mapping[str, int]) -> Executable:
        """The program of numbers where its dimensions have ``values``, by name; raises ShapeError as ``instance``."""
        return instance(self.executable, values, self._numbers)


def _most(nbytes: Extent) -> int | None:
    """The most bytes that a storage has for any size; None where they have no bound."""
    return nbytes if isinstance(nbytes, int) else nbytes.high
