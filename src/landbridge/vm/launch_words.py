"""LaunchWords: the words that launches of an open program read, for one choice of its sizes after another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from landbridge.memory.coherence import lend
from landbridge.tensor import Tensor
from landbridge.tensor.copy import copy_tensor

if TYPE_CHECKING:
    from landbridge.vm.program_memory import ProgramMemory

#: Choices of sizes whose words are in one allocation, as an import of memory takes longer than a write to it.
_CHOICES = 16
_WORD_BYTES = 8


class LaunchWords:
    """Memory for ``count`` words a choice of sizes, which kernels on ``vdevice`` read; it lives as long as any of its
    parts.
    """

    def __init__(self, memory: ProgramMemory, vdevice: int, count: int) -> None:
        self._memory, self._vdevice, self._count = memory, vdevice, count
        self._chunk: np.ndarray[Any, np.dtype[np.int64]] | None = None
        self._on_device: Tensor | None = None
        self._used = 0

    def put(self, words: np.ndarray[Any, np.dtype[np.int64]]) -> Tensor:
        """Returns a part of the memory that nothing else uses, with ``words``.

        They are written where the device reads them, or copied there if it cannot import memory of the host.
        """
        chunk, imported = self._chunk, self._on_device
        if chunk is None or imported is None or self._used == _CHOICES:
            chunk = self._chunk = np.zeros((_CHOICES, self._count), np.int64)
            imported = self._on_device = self._memory.importable_words(self._vdevice, chunk)
            self._used = 0
        number, self._used = self._used, self._used + 1
        chunk[number] = words
        start = imported.byte_offset + number * self._count * _WORD_BYTES
        part = Tensor(imported.storage, "int64", (self._count,), None, start)
        if imported.storage.owner is not None:
            lend(imported.storage, start, start + part.nbytes, writes=False)
        else:
            copy_tensor(part, Tensor.from_numpy_view(chunk[number]), cause="constants:bind")
        return part
