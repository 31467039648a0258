"""CallArguments: binds arguments for one call each, while what runs were given stays bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from landbridge.errors import InputError, ZeroCopyError
from landbridge.memory.host_array import address_of_known
from landbridge.tensor import Tensor
from landbridge.tensor.copy import copy_tensor
from landbridge.tensor.tensor import over_new
from landbridge.vm.argument import as_tensor
from landbridge.vm.by_value import ByValue
from landbridge.vm.frame import Frame
from landbridge.vm.program_memory import ProgramMemory
from landbridge.vm.registered_buffers import RegisteredBuffers
from landbridge.vm.slot import Slot
from landbridge.vm.staging import Staging

_empty = np.empty


class CallArguments:
    """Binds the arguments of calls on ``frame``, which serves calls alone; new outputs are allocated in ``memory``."""

    def __init__(self, frame: Frame, memory: ProgramMemory, buffers: RegisteredBuffers) -> None:
        self.frame, self._staging = frame, frame.staging
        self._slots = (*frame.inputs, *frame.outputs)
        #: The slots that take arguments: all but recurrent states.
        self.inputs, self.outputs = frame.inputs, frame.outputs
        self._memory, self._buffers, self._words = memory, buffers, frame.words
        #: Parameters that are bound to memory of the caller.
        self._shared: tuple[Slot, ...] = ()

    def bind_inputs(self, arrays: Sequence[Any]) -> Sequence[object]:
        """Bind ``arrays`` as inputs; returns what else must be kept alive during the call."""
        if len(arrays) != len(self.inputs):
            raise _wrong_number("input", len(arrays), self.inputs)
        if self._staging is not None:
            self._staging.clear()  # of a call that failed before it executed
        words = self._words
        keep: tuple[object, ...] = ()
        for slot, value in zip(self.inputs, arrays):  # noqa: B905 - lengths are checked, strict costs time
            if (
                type(value) is slot.array_type
                and value.dtype is slot.dtype
                and value.shape == slot.shape
                and value.flags.carray
            ):
                address = address_of_known(value)
            else:
                address, owner = self._borrow(slot, value)
                slot.owner = owner
                keep = (*keep, owner, slot.lend(owner))
            slot.address = address
            for word, offset in slot.places:
                words[word] = address + offset
            if slot.row_table is not None:
                slot.set_words(address, slot.owner)
        for slot in self._shared:
            slot.wait(slot.owner)
        return keep

    def new_outputs(self) -> list[Tensor]:
        """Returns new Tensors, bound as the outputs."""
        words = self._words
        results = []
        if self.frame.entry.shares:
            for slot in self.outputs:
                slot.owner = None  # of the call before, whose memory this one must not touch
        for slot in self.outputs:
            if slot.is_small:
                array = _empty(slot.shape, slot.dtype)
                address = address_of_known(array)
                tensor = over_new(array, slot.spec.dtype, slot.shape, address)
            else:
                slot.owner = tensor = self._memory.io.allocate(slot.spec)
                address = slot.location(tensor)
                if slot.row_table is not None:
                    slot.set_words(address, tensor)
            for word, offset in slot.places:
                words[word] = address + offset
            results.append(tensor)
        return results

    def bind_outputs(self, out: Sequence[Any]) -> Sequence[object]:
        """Bind ``out`` as outputs; returns their owners. Raises InputError where they overlap other arguments."""
        if len(out) != len(self.outputs):
            raise _wrong_number("output", len(out), self.outputs)
        borrowed = [self._borrow(slot, value) for slot, value in zip(self.outputs, out)]  # noqa: B905
        for slot, (address, owner) in zip(self.outputs, borrowed):  # noqa: B905
            slot.address, slot.owner = address, owner
            slot.set_words(address, owner)
        for slot in self.outputs:
            start = slot.address
            end = start + slot.nbytes
            for other in (*self._slots, *self._shared):
                overlaps = start < other.address + other.nbytes and other.address < end
                if (overlaps or other.slides is not None) and other is not slot:
                    slot.check_no_overlap(start, other, other.address)
        owners = [owner for _, owner in borrowed]
        return [owners, [slot.lend(owner) for slot, owner in zip(self.outputs, owners)]]  # noqa: B905

    def release(self) -> None:
        """Release what the last call kept alive; states stay."""
        for slot in (*self.inputs, *self.outputs):
            slot.owner = None

    def check_views(self, arrays: Sequence[Any], results: Sequence[Any]) -> None:
        """Raises HostAccessError when an open host view conflicts with a call on ``arrays`` that gives ``results``."""
        self.frame.entry.let_watchers_go()
        for slot, value in zip((*self.inputs, *self.outputs), (*arrays, *results), strict=True):
            slot.check_views(value.value if type(value) is ByValue else value)
        taken = {*self.inputs, *self.outputs}
        for slot in (*self._shared, *(slot for slot in self._slots if slot not in taken)):  # states are the latter
            slot.check_views(slot.owner)

    def borrow(self, slot: Slot, value: Any) -> tuple[int, object]:
        """Returns the address of ``value`` as the argument for ``slot``, and what must be kept alive while it is
        used.
        """
        address, owner = self._borrow(slot, value)
        return address, (owner, slot.lend(owner))

    def _borrow(self, slot: Slot, value: Any) -> tuple[int, object]:
        if type(value) is ByValue:
            return self._borrow_or_copy(slot, value)
        if self._staging is not None and Staging.needs(value):
            as_tensor(slot, value)
            memory = self._memory.io.allocate(slot.spec)
            self._staging.bind(slot, value, memory)
            return memory.data_address, memory
        if slot.is_input and slot.spec.axis_separators and not isinstance(value, Tensor):
            return self._copied(slot, value, "to_vdevice")  # an array is never in rows
        return self._buffers.borrow(slot, value)

    def _borrow_or_copy(self, slot: Slot, value: ByValue) -> tuple[int, object]:
        try:
            return self._borrow(slot, value.value)
        except ZeroCopyError:
            return self._copied(slot, value.value, value.cause)

    def _copied(self, slot: Slot, value: Any, cause: str) -> tuple[int, object]:
        """Returns new memory for ``slot``, with a copy of ``value``."""
        source, memory = as_tensor(slot, value), self._memory.io.allocate(slot.spec)
        copy_tensor(memory, source, cause=cause)
        return slot.location(memory), memory

    def leave_out(self, *states: Slot) -> None:
        """Stop taking arguments for ``states``, slots of runs that are inputs or outputs of recurrent states."""
        registers = {slot.register for slot in states}
        self.inputs = tuple(slot for slot in self.inputs if slot.register not in registers)
        self.outputs = tuple(slot for slot in self.outputs if slot.register not in registers)

    def check_state(self, source: Slot) -> None:
        """Raises InputError when an input lies in the memory that the state of output ``source`` is about to write."""
        for other in self.inputs:
            source.check_no_overlap(source.address, other, other.address)

    def follow(self, *slots: Slot) -> None:
        """Bind for calls what is bound to ``slots`` of runs."""
        for slot in slots:
            self.frame.slots[slot.register].bind(slot.address, slot.owner, slides=slot.slides)

    def add_shared(self, slots: Sequence[Slot]) -> None:
        """Check calls from now on against the memory of the caller that is bound to ``slots``, parameters of runs."""
        self.drop_shared(slots)
        self._shared += tuple(self.frame.slots[slot.register] for slot in slots)

    def drop_shared(self, slots: Sequence[Slot]) -> None:
        """Check calls no longer against ``slots``, parameters of runs that have memory of the program again."""
        registers = {slot.register for slot in slots}
        self._shared = tuple(slot for slot in self._shared if slot.register not in registers)


def _wrong_number(subject: str, given: int, slots: Sequence[Slot]) -> InputError:
    names = ", ".join(slot.spec.name for slot in slots) or "none"
    return InputError(f"{given} {subject}s given, the program takes {len(slots)}: {names}")
