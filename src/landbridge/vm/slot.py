"""Slots: the inputs, outputs and parameters of a bound program, with what fits each and what is bound."""

from __future__ import annotations

from array import array
from typing import Any, Literal

import numpy as np

from landbridge.dtypes import stored_dtype
from landbridge.errors import InputError
from landbridge.executable.parts import TensorSpec
from landbridge.memory.repeated_addresses import shifts
from landbridge.shapes.strides import same_layout
from landbridge.tensor import Tensor
from landbridge.tensor.in_rows import row_table
from landbridge.vm.device_binding import DeviceBinding
from landbridge.vm.entry import Entry
from landbridge.vm.lease import Lease, SlotUse, Tenancy

Role = Literal["input", "output", "parameter"]

#: Up to here numpy's allocator is the fastest; above, the C library maps fresh pages where a device's pool retains
#: them.
SMALL_BYTES = 1 << 16


class Slot:
    """One input, output or parameter (its ``role``) in a Frame: what fits there, and what is bound.

    ``places`` are the (word, byte offset) of ``words`` that depend on its address. ``binding``: the memory of
    arguments. ``for_kernels``: kernels of a device get the memory, which must be dense then. ``staged``: arguments may
    be staged through the host. ``borrowed``: code of the host uses them between barriers. ``row_table``: the word where
    the addresses of its rows begin, None where code of the host takes none.

    ``alias``: the input whose memory an output may be, or the output that may be the memory of an input; both from the
    same byte on.

    Bound is the memory from ``address`` to ``end``, which ``owner`` keeps alive: an array or a Tensor, None while
    nothing is bound. ``slides``: the addresses of all memory through which that slides, None where it does not. For
    runs alone: ``owned``, the program's memory for it, once it was needed; ``partner``, the other
    half of a recurrent state; and ``use``, whether executions write it, or a copy is writing it now.
    """

    __slots__ = (
        "_by_numpy",
        "address",
        "alias",
        "array_type",
        "binding",
        "borrowed",
        "dtype",
        "end",
        "for_kernels",
        "is_input",
        "is_small",
        "lease",
        "nbytes",
        "owned",
        "owner",
        "partner",
        "places",
        "program",
        "register",
        "role",
        "row_table",
        "shape",
        "slides",
        "spec",
        "strides",
        "use",
        "words",
    )

    def __init__(
        self,
        role: Role,
        spec: TensorSpec,
        register: int,
        places: tuple[tuple[int, int], ...],
        words: array[int],
        program: Entry,
        binding: DeviceBinding,
        *,
        for_kernels: bool = False,
        staged: bool = False,
        borrowed: bool = False,
        row_table: int | None = None,
    ) -> None:
        self.role, self.register, self.words = role, register, words
        self.program = program
        self.is_input = role != "output"
        self.dtype: np.dtype[Any] = stored_dtype(spec.dtype)
        self.for_kernels, self.borrowed, self.row_table = for_kernels, borrowed, row_table
        in_place = binding.is_direct and not binding.is_other_device and (binding.is_host or not for_kernels)
        in_place = in_place and not spec.axis_separators
        #: The binding of memory that code of the host does not use in place; None where it does.
        self.binding = None if in_place else binding
        #: Arrays of exactly this type are used in place if they fit; None where kernels need owners.
        self.array_type: Any = np.ndarray if in_place and not (spec.strides or for_kernels or staged) else None
        self._by_numpy = binding.is_host and not for_kernels
        self.partner: Slot | None = None
        self.alias: Slot | None = None
        self.use = SlotUse(role == "output")
        self.take(spec, spec.nbytes, places)

    def take(self, spec: TensorSpec, nbytes: int, places: tuple[tuple[int, int], ...]) -> None:
        """Resize to what fits ``spec``, of ``nbytes``, with nothing bound."""
        self.address = self.end = 0
        self.slides: tuple[int, int] | None = None
        self.owner: Any = None
        self.lease: Lease | None = None
        self.owned: Tensor | None = None
        self.spec, self.shape, self.nbytes, self.places = spec, spec.shape, nbytes, places
        #: The distances between neighbours of each axis, in elements, where there are gaps; None for dense memory.
        self.strides = spec.strides or None
        #: True when numpy allocates a call's new output faster than the device's allocator.
        self.is_small = self._by_numpy and nbytes <= SMALL_BYTES

    def __str__(self) -> str:
        return f"{self.role} {self.spec.name!r}"

    def bind(
        self, address: int, owner: object, lease: Lease | None = None, slides: tuple[int, int] | None = None
    ) -> None:
        """Bind the memory at ``address``, which ``owner`` keeps alive, for executions; ``lease`` is kept as long.
        ``slides``: the addresses through which it slides.

        An interrupt leaves either the previous binding or this one.
        """
        try:
            self.set_words(address, owner)
            self.address, self.end, self.owner, self.lease = address, address + self.nbytes, owner, lease
            self.slides = slides
        except BaseException:  # addresses of memory that nobody keeps alive must not stay
            self.bind(address, owner, lease, slides)
            raise

    def set_words(self, address: int, owner: object) -> None:
        """Write what code of the host reads of the memory at ``address``, which is that of ``owner``."""
        for word, offset in self.places:
            self.words[word] = address + offset
        if self.row_table is not None and isinstance(owner, Tensor):
            for number, row in enumerate(row_table(owner)):
                self.words[self.row_table + number] = row

    def bind_owned(self, owned: Tensor) -> None:
        """Bind ``owned``, the program's own memory for this slot, in place of what is bound, and keep it for later
        runs.
        """
        self.owned = owned
        if self.owner is not owned:
            address, slides = self.location(owned), None
            if owned.storage.is_window:
                base = address - owned.byte_offset
                slides = base, base + owned.storage.nbytes
            self.bind(address, owned, slides=slides)

    def tensor(self) -> Tensor:
        """Returns a Tensor over the memory that is bound."""
        return self.owner if isinstance(self.owner, Tensor) else Tensor.from_numpy_view(self.owner)

    def lend(self, owner: object) -> Lease | None:
        """Returns a Lease of the bytes of ``owner``, after waiting for queued work and other programs' runs on them.

        While the Lease lives, the bytes are not freed, and accesses of them wait for runs of this program. None where
        ``owner`` is no Tensor.
        """
        if not isinstance(owner, Tensor):
            return None
        tenancy = self.tenancy(owner)  # before the wait, as others check it before they begin
        self.wait(owner)
        return tenancy

    def tenancy(self, tensor: Tensor, *, owned: bool = False) -> Tenancy:
        """Returns the Lease of ``tensor``, which runs use through this slot; ``owned``: the program's own memory."""
        subject = f"{self} of {self.program.name}"
        in_place = self.binding is None
        return Tenancy(tensor, subject, self.program, self.use, may_write=owned or self.use.writes, in_place=in_place)

    def location(self, tensor: Tensor) -> int:
        """Returns the address of ``tensor``; for memory of a device, a number that is unique within its Storage."""
        if self.spec.axis_separators:
            return (tensor.storage.number << 64) + tensor.byte_offset
        if (
            self.binding is None
            or self.binding.is_direct
            or self.borrowed
            or (tensor.storage.owner is not None and tensor.storage.kind.host_access != "none")
        ):
            return tensor.data_address
        return (tensor.storage.number << 64) + tensor.byte_offset

    def fits_layout(self, value: np.ndarray[Any, Any] | Tensor) -> bool:
        """Returns whether the elements of ``value``, of this shape and dtype, have the strides that code uses."""
        if self.strides is None:
            return value.is_contiguous if isinstance(value, Tensor) else value.flags.c_contiguous
        size = 1 if isinstance(value, Tensor) else self.dtype.itemsize
        return same_layout(self.shape, [step * size for step in self.strides], value.strides)

    def wait(self, owner: Tensor) -> None:
        """Wait for queued accesses, copies of devices or background runs, that an execution must follow."""
        storage = owner.storage
        if not storage.has_queued and not self.program.shares:
            return
        self.program.waits = True  # so that two that wait for each other both continue
        try:
            storage.wait(*owner.byte_range, writes=self.use.writes, program=self.program)
        finally:
            self.program.waits = False

    def check_views(self, owner: object) -> None:
        """Raises HostAccessError when an open host view conflicts with an execution on ``owner``."""
        if isinstance(owner, Tensor):
            subject = f"the run, as {self},"
            storage = owner.storage
            accessed = (0, storage.nbytes) if storage.is_window else owner.byte_range
            storage.check_access(*accessed, writes=not self.is_input, subject=subject)

    def check_no_overlap(self, address: int, other: Slot, start: int) -> None:
        """Raises InputError when the bytes from ``address`` share some with those of ``other`` from ``start``.

        All of the memory of an alias may be shared. What slides may have all of the memory through which it does.
        """
        if self.alias is other and address == start:
            return
        low, high = self.slides or (address, address + self.nbytes)
        first, last = other.slides or (start, start + other.nbytes)
        shared = max(min(high, last + shift) - max(low, first + shift) for shift in shifts(first, low))
        if shared > 0:
            way_out = ""
            if "parameter" not in (self.role, other.role):
                way_out = (
                    f", or make a recurrent state of them with bind_state(output, input){self._way_to_alias(other)}"
                )
            raise InputError(f"{self} would share {shared} bytes with {other}; give each memory of its own{way_out}")

    def _way_to_alias(self, other: Slot) -> str:
        """Returns how to request one memory for this slot and ``other``, where they may have that."""
        if self.is_input == other.is_input:
            return ""
        if self.alias is other:
            return ", or both the same memory from the same byte on"
        output, input = (other, self) if self.is_input else (self, other)
        if (output.shape, output.dtype) != (input.shape, input.dtype):
            return ""
        return (
            f", or compile the model with alias={{{output.spec.name!r}: {input.spec.name!r}}}, which lets one memory "
            "be both"
        )
