"""What a page needs of pynq, on a machine without a board: the same names, attributes and methods."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from board_array import Dram, PynqArray

_dram = Dram(nbytes=1 << 20)


def allocate(shape: Any, dtype: Any, target: Any = None, *, cacheable: bool = True) -> PynqArray:
    """As ``pynq.allocate``."""
    made = _dram.allocate(shape, dtype, coherent=not cacheable, kind=PynqArray)
    assert isinstance(made, PynqArray)
    return made


class _Receives:
    """The logic writes a frame."""

    def transfer(self, array: PynqArray) -> None:
        _dram.seen(array)[:] = np.random.default_rng(len(_dram.calls)).random(array.shape)
        _dram.calls.clear()

    def wait(self) -> None:
        pass


class _Sends:
    """The logic reads the scores, which have to be there, with no other barriers than those of the run."""

    def transfer(self, array: PynqArray) -> None:
        assert [name for name, *_ in _dram.calls] == ["invalidate", "flush"]
        assert abs(float(_dram.seen(array).sum()) - 1) < 1e-5

    def wait(self) -> None:
        pass


class Overlay:
    """As ``pynq.Overlay``, with one DMA engine."""

    def __init__(self, bitstream: str) -> None:
        self.camera_dma = SimpleNamespace(recvchannel=_Receives(), sendchannel=_Sends())
