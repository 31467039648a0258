"""Slots: the inputs, outputs and parameters of a bound program, and the memory bound to each now."""

from __future__ import annotations

import math
from array import array
from typing import Any, Literal

import numpy as np

from landbridge.dtypes import numpy_dtype
from landbridge.errors import InputError
from landbridge.executable.executable import TensorSpec
from landbridge.tensor import Tensor

Role = Literal["input", "output", "parameter"]


class Slot:
    """One input, output or parameter (its ``role``): what fits there, and what is bound.

    ``places`` are the (word, byte offset) of a program's words that depend on its address; ``owner`` keeps the
    bound memory alive and is None while nothing is bound; ``partner`` is the other half of a recurrent state.
    """

    __slots__ = (
        "address",
        "call_address",
        "dtype",
        "end",
        "is_input",
        "is_small",
        "mask",
        "nbytes",
        "own",
        "owner",
        "partner",
        "places",
        "role",
        "shape",
        "spec",
    )

    def __init__(self, spec: TensorSpec, role: Role, places: tuple[tuple[int, int], ...]) -> None:
        self.spec = spec
        self.role = role
        self.is_input = role != "output"
        self.places = places
        self.shape = spec.shape
        self.dtype: np.dtype[Any] = numpy_dtype(spec.dtype)
        self.mask = self.dtype.itemsize - 1
        self.nbytes = math.prod(spec.shape) * self.dtype.itemsize
        self.owner: Any = None
        self.address = 0
        self.end = 0
        #: The address in the call that is under way.
        self.call_address = 0
        #: Whether a call's new output is better taken from numpy than from the device's allocator.
        self.is_small = False
        #: The Session's memory for it, once it was needed.
        self.own: Tensor | None = None
        self.partner: Slot | None = None

    def __str__(self) -> str:
        return f"{self.role} {self.spec.name!r}"

    def bind(self, words: array[int], address: int, owner: object) -> None:
        """Make ``words`` use the memory at ``address``, which ``owner`` keeps alive."""
        for word, offset in self.places:
            words[word] = address + offset
        self.address = address
        self.end = address + self.nbytes
        self.owner = owner

    def check_no_overlap(self, address: int, other: Slot, start: int) -> None:
        """Raise InputError when the bytes from ``address`` share some with those of ``other`` from ``start``."""
        shared = min(address + self.nbytes, start + other.nbytes) - max(address, start)
        if shared > 0:
            raise InputError(
                f"{self} would share {shared} bytes with {other}; give each memory of its own, or make a "
                "recurrent state of them with bind_state(output, input)"
            )
