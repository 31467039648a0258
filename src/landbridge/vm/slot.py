"""Slots: the inputs, outputs and parameters of a bound program, and the memory bound to each now."""

from __future__ import annotations

from array import array
from typing import Any, Literal

import numpy as np

from landbridge.dtypes import numpy_dtype
from landbridge.errors import InputError
from landbridge.executable.parts import TensorSpec
from landbridge.memory.storage import Storage
from landbridge.shape import same_layout
from landbridge.tensor import Tensor
from landbridge.vm.entry import Entry
from landbridge.vm.home import Home

Role = Literal["input", "output", "parameter"]


class Lease:
    """Stands in a Storage's list of users for as long as it lives: the slot that uses the bytes, and whose it is."""

    __slots__ = ("__weakref__", "_what")

    def __init__(self, storage: Storage, what: str) -> None:
        self._what = what
        storage.add_export(self)
        storage.live_region  # noqa: B018  raises when freed meanwhile

    def __str__(self) -> str:
        return self._what


class Use:
    """Whether runs write what is bound to a slot, or a copy does right now."""

    __slots__ = ("writes",)

    def __init__(self, writes: bool) -> None:
        self.writes = writes


class Tenancy(Lease):
    """A Lease of ``tensor``, which runs of ``program`` use as what is bound to ``slot``; ``own``: its own memory."""

    __slots__ = ("_high", "_low", "_use", "may_write", "program")

    def __init__(self, slot: Slot, tensor: Tensor, *, own: bool = False) -> None:
        super().__init__(tensor.storage, f"{slot} of {slot.holder}")
        self.program = slot.program
        self.may_write = own or slot.use.writes
        self._use = slot.use  # and not the slot, which refers to this
        self._low, self._high = tensor.byte_range
        tensor.storage.add_tenant(self)

    def conflicts(self, start: int, stop: int, writes: bool) -> bool:
        """Whether an access of that range of the Storage may not happen during a run."""
        return (writes or self._use.writes) and start < self._high and self._low < stop


class Slot:
    """One input, output or parameter (its ``role``): what fits there, and what is bound.

    ``places`` are the (word, byte offset) of a program's words that depend on its address; ``owner`` keeps the
    bound memory alive and is None while nothing is bound, ``storage`` is that of a bound Tensor; ``partner`` is the
    other half of a recurrent state. ``holder`` names the ``program``, for whoever frees what is bound to it.
    """

    __slots__ = (
        "address",
        "array_type",
        "call_address",
        "call_owner",
        "dtype",
        "end",
        "for_kernels",
        "holder",
        "home",
        "is_input",
        "is_small",
        "lease",
        "mask",
        "nbytes",
        "own",
        "owner",
        "partner",
        "places",
        "program",
        "role",
        "shape",
        "spec",
        "storage",
        "strides",
        "use",
    )

    def __init__(
        self, spec: TensorSpec, role: Role, places: tuple[tuple[int, int], ...], holder: str, program: Entry
    ) -> None:
        self.spec = spec
        self.holder = holder
        self.program = program
        self.role = role
        self.use = Use(role == "output")
        self.is_input = role != "output"
        self.places = places
        self.shape = spec.shape
        #: Elements between neighbours of each axis where there are gaps; None where memory is dense.
        self.strides = spec.strides or None
        self.dtype: np.dtype[Any] = numpy_dtype(spec.dtype)
        self.mask = self.dtype.itemsize - 1
        self.nbytes = spec.nbytes
        self.owner: Any = None
        self.address = 0
        self.end = 0
        #: The address in the call that is under way, and what a device's step finds there.
        self.call_address = 0
        self.call_owner: Any = None
        #: Where bound memory must be, when it is not the host's.
        self.home: Home | None = None
        #: Whether kernels of a device are given the memory, which has to be dense then.
        self.for_kernels = False
        #: Arrays of exactly this type need only fit: their memory is used in place.
        self.array_type: Any = None if spec.strides else np.ndarray
        #: Whether a call's new output is better taken from numpy than from the device's allocator.
        self.is_small = False
        #: The Session's memory for it, once it was needed.
        self.own: Tensor | None = None
        self.partner: Slot | None = None
        self.storage: Storage | None = None
        self.lease: Lease | None = None

    def __str__(self) -> str:
        return f"{self.role} {self.spec.name!r}"

    def bind(self, words: array[int], address: int, owner: object) -> None:
        """Make ``words`` use the memory at ``address``, which ``owner`` keeps alive.

        Waits as ``lend`` does. An interrupt leaves bound what was, or this.
        """
        lease = None if owner is self.own else self.lend(owner)
        try:
            self._point(words, address, owner, lease)
        except BaseException:  # words of memory that nobody keeps alive must not stay
            self._point(words, address, owner, lease)
            raise

    def _point(self, words: array[int], address: int, owner: object, lease: Lease | None) -> None:
        storage = owner.storage if isinstance(owner, Tensor) else None
        for word, offset in self.places:
            words[word] = address + offset
        self.address, self.end = address, address + self.nbytes
        self.owner, self.storage, self.lease = owner, storage, lease

    def lend(self, owner: object) -> Lease | None:
        """While the result lives, the bytes of a Tensor ``owner`` are not freed, and others wait for runs on them.

        Waits for what is queued on them, and for runs of others.
        """
        if not isinstance(owner, Tensor):
            return None
        tenancy = Tenancy(self, owner)  # first, as others look for it before they begin
        self.wait(owner)
        return tenancy

    def place(self, tensor: Tensor) -> int:
        """The address of ``tensor``; for memory of a device, a number that is one within its Storage."""
        if (
            self.home is None
            or self.home.is_direct
            or (tensor.storage.owner is not None and tensor.storage.kind.host_access != "none")
        ):
            return tensor.data_address
        return (id(tensor.storage) << 64) + tensor.byte_offset

    def fits_layout(self, value: np.ndarray[Any, Any] | Tensor) -> bool:
        """Whether the elements of ``value``, of this shape and dtype, lie where code looks for them."""
        if self.strides is None:
            return value.is_contiguous if isinstance(value, Tensor) else value.flags.c_contiguous
        size = 1 if isinstance(value, Tensor) else self.dtype.itemsize
        return same_layout(self.shape, [step * size for step in self.strides], value.strides)

    def wait(self, owner: Tensor) -> None:
        """Wait for queued accesses, copies of devices or runs in the background, that an execution must come after."""
        storage = owner.storage
        if not storage.has_queued and not self.program.shares:
            return
        self.program.waits = True  # so that two that wait for each other both go on
        try:
            storage.wait(*owner.byte_range, writes=self.use.writes, program=self.program)
        finally:
            self.program.waits = False

    def check_no_overlap(self, address: int, other: Slot, start: int) -> None:
        """Raise InputError when the bytes from ``address`` share some with those of ``other`` from ``start``."""
        shared = min(address + self.nbytes, start + other.nbytes) - max(address, start)
        if shared > 0:
            raise InputError(
                f"{self} would share {shared} bytes with {other}; give each memory of its own, or make a "
                "recurrent state of them with bind_state(output, input)"
            )
