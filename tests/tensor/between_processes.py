"""What processes of the tests of Tensors between processes do; at a place where those that are spawned find it."""

from __future__ import annotations

from typing import Any

import numpy as np

import landbridge as lb


def add(tensor: lb.Tensor, program: lb.Executable) -> lb.Tensor:
    """``program`` of ``tensor``, by a Session that uses it in place."""
    assert tensor.data_address == np.asarray(tensor).ctypes.data
    (result,) = lb.Session(program, num_threads=1)(tensor)
    return result  # type: ignore[no-any-return]


def serve(requested: Any, answered: Any, program: lb.Executable) -> None:
    """Puts ``add`` of each Tensor of the queue ``requested`` into ``answered``, until a None."""
    while (tensor := requested.get()) is not None:
        answered.put(add(tensor, program))


def refused(session: Any) -> None:
    raise AssertionError(f"{session} came to another process")
