"""BoundProgram: a Program with its memory, its slots and two sets of words, ready to execute.

One set of words serves ``Session.run`` and keeps what is bound; the other serves calls, whose arguments are bound
for that call alone. Nothing here locks: a Session lets one thread in at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np

from landbridge.dtypes import numpy_dtype
from landbridge.errors import InputError
from landbridge.executable.executable import Executable
from landbridge.executable.parts import Function
from landbridge.memory import ledger
from landbridge.memory.accesses import open_views
from landbridge.memory.borrowed import host_device
from landbridge.memory.storage import Storage
from landbridge.tensor import Tensor, empty
from landbridge.tensor.copy import copy_tensor
from landbridge.tensor.tensor import exported_array
from landbridge.vm.argument import as_array, as_tensor
from landbridge.vm.call_arguments import CallArguments
from landbridge.vm.code_image import LoadedImage
from landbridge.vm.entry import Entry
from landbridge.vm.executors import Execute, bind_program, executors, load_modules, preparer
from landbridge.vm.home import Home
from landbridge.vm.program_memory import ProgramMemory
from landbridge.vm.registered_buffers import RegisteredBuffers
from landbridge.vm.slot import Slot, Tenancy
from landbridge.vm.staging import Staging
from landbridge.vm.thread_pool import pool_address, runtime_address, stop_at_exit

#: Up to here numpy's allocator is the fastest; above, the C library maps fresh pages where a device's pool keeps them.
_SMALL_BYTES = 1 << 16


class BoundProgram:
    """The main function of ``executable`` in ``homes`` (one for each vdevice) and on ``threads`` threads.

    Whoever executes it has the turn of ``entry``. Raises BindError or ExecutableError when it cannot be bound.
    """

    def __init__(self, executable: Executable, homes: Sequence[Home], threads: int, entry: Entry) -> None:
        function = executable.main
        self.memory = memory = ProgramMemory(executable, homes)
        images = load_modules(executable, homes)
        program = bind_program(executable, images, memory)
        native = [image for image in images if isinstance(image, LoadedImage)]
        runtime, pool = 0, 0
        self.threads = threads if program.needs_threads else 1
        if native:
            runtime = runtime_address(native[0])
            pool = pool_address(native[0], self.threads)
        self._images = images
        self.entry = entry
        self._leases: list[Tenancy] = []
        self.buffers = RegisteredBuffers()
        stop_at_exit(self)
        self._bound = program
        self._device = str(memory.home(0).device)
        self.words, call_words = program.instantiate(), program.instantiate()
        places = iter(program.places)
        name = session_name(function)
        self.inputs = tuple(Slot(spec, "input", next(places), name, entry) for spec in function.inputs)
        self.outputs = tuple(Slot(spec, "output", next(places), name, entry) for spec in function.outputs)
        self.parameters = tuple(Slot(spec, "parameter", next(places), name, entry) for spec in function.parameters)
        slots = (*self.inputs, *self.outputs)
        for slot in slots:
            slot.is_small = memory.home(0).is_host and slot.nbytes <= _SMALL_BYTES
            slot.for_kernels = len(native) < len(images)
            if slot.for_kernels:  # what kernels are given is looked up by owner, not by address
                slot.array_type, slot.is_small = None, False
            if not memory.home(0).is_direct or (slot.for_kernels and not memory.home(0).is_host):
                slot.home, slot.array_type = memory.home(0), None
        #: Where arguments on a device take the way over the host; None where they never do.
        self.staging = Staging() if memory.home(0) is not homes[0] else None
        self.call = CallArguments(call_words, self.inputs, self.outputs, memory, self.buffers, self.staging)
        registers = (*slots, *self.parameters)
        self._runners = [
            executors(program, self.words, runtime, pool, lambda register: registers[register].owner),
            executors(program, call_words, runtime, pool, lambda register: registers[register].call_owner),
        ]
        self.execute, self.execute_call = (plain for plain, _ in self._runners)
        #: The same with what they move told to the ledger; None when that is nothing.
        self.listed: tuple[Execute, Execute] | None = None
        if program.listed_steps:
            self.listed = self._runners[0][1], self._runners[1][1]
        if self.staging is not None:
            for slot in slots:
                slot.array_type = None
            self.execute = self.staging.wrap(self.execute, call=False)
            self.execute_call = self.staging.wrap(self.execute_call, call=True)
            if self.listed is not None:
                run, call = self.listed
                self.listed = self.staging.wrap(run, call=False), self.staging.wrap(call, call=True)
        for slot in self.parameters:
            first = self.memory.parameter(slot.spec)
            slot.bind(self.words, first.data_address, first)
            self.call.point_at(slot)
        self._prepare = preparer(program, self.words, runtime, pool, lambda register: registers[register].owner)
        if program.preparation:
            turn = entry.take()
            try:
                self._prepare()
            finally:
                entry.give_back(turn)
        self.states: tuple[tuple[Slot, Slot], ...] = ()

    def bind_own(self, slot: Slot) -> Tensor:
        """Bind ``slot`` to memory of the program's own, zeroed when new."""
        if slot.own is None:
            own = self._own_tensor(slot)
            _fill_zeros(own)
            slot.own = own
        if slot.owner is not slot.own:
            slot.bind(self.words, slot.place(slot.own), slot.own)
        return slot.own

    def borrow(self, slot: Slot, value: Any) -> tuple[int, object]:
        """As ``argument.borrow``, for runs; by way of memory of the program's own where that is allowed."""
        if self.staging is not None:
            if Staging.needs(value):
                as_tensor(slot, value)
                memory = self.bind_own(slot)
                self.staging.bind(slot, value, memory, slot.lend(value))
                return memory.data_address, memory
            self.staging.unbind(slot)
        return self.buffers.borrow(slot, value)

    def copy_in(self, slot: Slot, value: Any, cause: str) -> None:
        """Copy ``value``, which ``as_array`` or ``as_tensor`` takes, to memory of the program's own and bind that."""
        before, slot.use.writes = slot.use.writes, True
        try:
            if self.entry.shares and slot.own is not None:
                self.entry.in_order(_orders([slot.own.storage]), partial(self._copy_in, slot, value, cause))
            else:
                self._copy_in(slot, value, cause)
        finally:
            slot.use.writes = before

    def _copy_in(self, slot: Slot, value: Any, cause: str) -> None:
        if slot.home is not None or Staging.needs(value):
            tensor = as_tensor(slot, value)
            own = slot.own or self._own_tensor(slot)
            copy_tensor(own, tensor, cause=cause)
            slot.own = own  # now that it has values
            if self.staging is not None:
                self.staging.unbind(slot)
            slot.bind(self.words, slot.place(own), own)
            return
        source = as_array(slot, value)
        if self.staging is not None:
            self.staging.unbind(slot)
        own = slot.own or self._own_tensor(slot)
        slot.wait(own)
        if open_views:
            own.storage.check_access(*own.byte_range, writes=True, what=cause)
        for other in self.outputs:  # it may have been lent meanwhile
            if other.owner is not None:
                slot.check_no_overlap(slot.place(own), other, other.address)
        ledger.copy_array(
            exported_array(own, waits=False),
            source,
            cause=cause,
            tensor=slot.spec.name,
            source=self._device,
            destination=self._device,
            casting="no" if source.dtype.isnative else "unsafe",  # the dtype is right, only the byte order differs
        )
        slot.own = own  # now that it has values
        self.bind_own(slot)

    def _own_tensor(self, slot: Slot) -> Tensor:
        """Memory of the program's own, which nobody may free while the program lives."""
        if slot.role == "parameter":  # code reads it, wherever inputs are
            tensor = empty(slot.shape, dtype=slot.spec.dtype, device=host_device())
        else:
            tensor = self.memory.own(slot.spec)
        self._leases.append(Tenancy(slot, tensor, own=True))
        return tensor

    def set_parameters(self, values: Sequence[tuple[Slot, Any]]) -> None:
        """Copy new values to memory of the program's own, all or none; the file's are left as they are."""
        for slot, value in values:
            as_tensor(slot, value)  # raises before anything is copied
        for slot, value in values:
            self.copy_in(slot, value, "set_params")
            self.call.point_at(slot)
        self._prepare()

    def copy_out(self, slot: Slot, result: Tensor, out: Any) -> None:
        """Copy ``result``, a value of ``slot``, to the array, Tensor or DLPack producer ``out``."""
        if not isinstance(out, np.ndarray | Tensor) and not hasattr(out, "__dlpack__"):
            raise InputError(f"{slot}: a {type(out).__name__} cannot be written; pass an array or a Tensor")
        if slot.home is not None or Staging.needs(out):
            target = as_tensor(slot, out)
            copy_tensor(target, result, cause="get_output")
            target.storage.wait(*target.byte_range, writes=True)
            return
        ledger.copy_array(
            as_array(slot, out),
            np.asarray(result),
            cause="get_output",
            tensor=slot.spec.name,
            source=self._device,
            destination=self._device,
        )

    def complete(self) -> None:
        """Give every output without memory some, all or none; raises InputError naming inputs that have none."""
        missing = [repr(slot.spec.name) for slot in self.inputs if slot.owner is None]
        if missing:
            raise InputError(f"nothing is bound to input {', '.join(missing)}; call set_input or set_input_zero_copy")
        absent = [slot for slot in self.outputs if slot.owner is None]
        new = [slot for slot in absent if slot.own is None]
        leases = len(self._leases)
        try:
            for slot in new:
                slot.own = self._own_tensor(slot)
                _fill_zeros(slot.own)
        except BaseException:
            for slot in new:
                slot.own = None
            del self._leases[leases:]
            raise
        for slot in absent:
            self.bind_own(slot)

    def check_call_states(self) -> None:
        """Raise InputError when a call's input lies in the memory that a recurrent state is about to write."""
        for source, _ in self.states:
            self.call.check_state(source)

    def bind_state(self, source: Slot, target: Slot) -> None:
        """Make output ``source`` of each execution the input ``target`` of the next.

        Raises InputError when another input is bound to the memory of one of them.
        """
        for half in (source, target):
            if self.staging is not None:
                self.staging.unbind(half)
            for other in self.inputs:
                if half.own is not None and other is not target and other.owner is not None:
                    half.check_no_overlap(half.place(half.own), other, other.address)
        if target.owner is not None and target.owner is not target.own:
            self.copy_in(target, slot_tensor(target), "bind_state")
        self.bind_own(target)
        self.bind_own(source)
        source.partner, target.partner = target, source
        target.use.writes = True
        self.states = (*self.states, (source, target))
        try:
            self._take_from_calls(source, target)
        except BaseException:  # an interrupt: they are a state already
            self._take_from_calls(source, target)
            raise

    def _take_from_calls(self, source: Slot, target: Slot) -> None:
        self.call.point_at(source, target)
        self.call.leave_out(source, target)

    def swap_states(self) -> None:
        """After an execution: what it wrote is what the next reads."""
        swapped = [(source, target, target.own, source.own) for source, target in self.states]
        try:
            self._bind_states(swapped)
        except BaseException:  # an interrupt: all have swapped, or none
            self._bind_states(swapped)
            raise

    def _bind_states(self, swapped: Sequence[tuple[Slot, Slot, Tensor | None, Tensor | None]]) -> None:
        for source, target, written, read in swapped:
            source.own, target.own = written, read
            self.bind_own(source)
            self.bind_own(target)
            self.call.point_at(source, target)

    def check_views(self, slots: Sequence[Slot], owners: Iterable[object]) -> None:
        """Raise HostAccessError when an open host view conflicts with an execution on ``owners``, one a slot."""
        for slot, owner in zip(slots, owners, strict=True):
            if isinstance(owner, Tensor):
                start, stop = owner.byte_range
                owner.storage.check_access(start, stop, writes=not slot.is_input, what=f"the run, as {slot},")

    def orders(self) -> list[AbstractContextManager[Any]]:
        """What a run holds so that no other program's is under way on memory that the two share."""
        slots = (*self.inputs, *self.outputs, *self.parameters)
        return _orders(slot.storage for slot in slots)

    def call_orders(self) -> list[AbstractContextManager[Any]]:
        """``orders``, for a call on what is bound now."""
        slots = (*self.inputs, *self.outputs, *self.parameters)
        owners = [slot.call_owner for slot in slots]
        return _orders(owner.storage for owner in owners if isinstance(owner, Tensor))


def _orders(storages: Iterable[Storage | None]) -> list[AbstractContextManager[Any]]:
    found = {id(storage.order): storage.order for storage in storages if storage is not None and storage.order}
    return [found[known] for known in sorted(found)]


def session_name(function: Function) -> str:
    """How messages name a Session of ``function``."""
    inputs, outputs = (", ".join(spec.name for spec in specs) for specs in (function.inputs, function.outputs))
    return f"Session({inputs} -> {outputs})"


def slot_tensor(slot: Slot) -> Tensor:
    """A Tensor over the memory bound to ``slot``."""
    owner = slot.owner
    return owner if isinstance(owner, Tensor) else Tensor.from_numpy_view(owner)


def read_only(tensor: Tensor) -> Tensor:
    """The same bytes, dense, as a Tensor that nobody may write through."""
    if tensor.readonly:
        return tensor
    return Tensor(tensor.storage, tensor.dtype, tensor.shape, None, tensor.byte_offset, readonly=True)


def _fill_zeros(tensor: Tensor) -> None:
    if tensor.storage.kind.host_access == "read_write" and not tensor.axis_separators:
        with tensor.host_view("w" if tensor.is_contiguous else "rw") as array:
            array.fill(0)
    elif Staging.needs(tensor):
        zeros = np.zeros(tensor.shape, numpy_dtype(tensor.dtype))
        copy_tensor(tensor, Tensor.from_numpy_view(zeros), cause="zeros")
    else:
        np.asarray(tensor).fill(0)
