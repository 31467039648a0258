"""BoundProgram: a Program with its memory, its slots and two sets of words, ready to execute.

One set of words serves ``Session.run`` and keeps what is bound; the other serves calls, whose arguments are bound
for that call alone. Nothing here locks: a Session lets one thread in at a time.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from threading import Lock
from typing import Any

import numpy as np

from landbridge.device.device import Device
from landbridge.device.protocols import Event
from landbridge.errors import InputError
from landbridge.executable.executable import Executable, Function
from landbridge.memory import ledger
from landbridge.memory.host_array import address_of
from landbridge.memory.storage import Access, host_device
from landbridge.tensor import Tensor
from landbridge.vm.argument import as_array, borrow
from landbridge.vm.bind import bind_function
from landbridge.vm.code_image import load_image
from landbridge.vm.interpreter import run_steps
from landbridge.vm.program import NativeStep, Program
from landbridge.vm.program_memory import ProgramMemory
from landbridge.vm.slot import Lease, Slot
from landbridge.vm.thread_pool import pool_address, runtime_address, stop_at_exit

_ndarray, _empty, _view = np.ndarray, np.empty, Tensor.from_numpy_view
_RUN = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


#: Up to here numpy's allocator is the fastest; above, the C library maps fresh pages where a device's pool keeps them.
_SMALL_BYTES = 1 << 16


class BoundProgram:
    """The main function of ``executable`` on ``devices`` (one for each vdevice) and ``threads`` threads.

    ``lock`` is the one held during every execution. Raises BindError or ExecutableError when it cannot be bound.
    """

    def __init__(self, executable: Executable, devices: tuple[Device, ...], threads: int, lock: Lock) -> None:
        function = executable.main
        self.memory = ProgramMemory(executable, devices)
        images = [load_image(module.image) for module in executable.modules]
        program = bind_function(function, executable.vdevices, images, self.memory)
        runtime, pool = 0, 0
        if images:
            runtime, pool = runtime_address(images[0]), pool_address(images[0], threads)
        self._images = images
        self.lock = lock
        self._leases: list[Lease] = []
        stop_at_exit(self)
        self._device = str(devices[0])
        self.moves = program.moves
        self.words, self.call_words = program.instantiate(), program.instantiate()
        self.execute = _executor(program, self.words, runtime, pool)
        self.execute_call = _executor(program, self.call_words, runtime, pool)
        places = iter(program.places)
        name = session_name(function)
        self.inputs = tuple(Slot(spec, "input", next(places), name) for spec in function.inputs)
        self.outputs = tuple(Slot(spec, "output", next(places), name) for spec in function.outputs)
        self.parameters = tuple(Slot(spec, "parameter", next(places), name) for spec in function.parameters)
        for slot in self.outputs:
            slot.is_small = devices[0] == host_device() and slot.nbytes <= _SMALL_BYTES
        for slot in self.parameters:
            first = self.memory.parameter(slot.spec)
            slot.bind(self.words, first.data_address, first)
            self._point_call_at(slot)
        self.states: tuple[tuple[Slot, Slot], ...] = ()
        #: The slots that a call's arguments are for: all but recurrent states.
        self.call_inputs, self.call_outputs = self.inputs, self.outputs

    def bind_own(self, slot: Slot) -> Tensor:
        """Bind ``slot`` to memory of the program's own, zeroed when new."""
        if slot.own is None:
            slot.own = self._own_tensor(slot)
            np.asarray(slot.own).fill(0)
        if slot.owner is not slot.own:
            slot.bind(self.words, slot.own.data_address, slot.own)
        return slot.own

    def copy_in(self, slot: Slot, source: np.ndarray[Any, Any], cause: str) -> None:
        """Copy ``source`` to memory of the program's own and bind ``slot`` to it."""
        if slot.own is None:
            slot.own = self._own_tensor(slot)
        slot.wait(slot.own)
        for other in self.outputs:  # it may have been lent meanwhile
            if other.owner is not None:
                slot.check_no_overlap(slot.own.data_address, other, other.address)
        ledger.copy_array(
            np.asarray(slot.own),
            source,
            cause=cause,
            tensor=slot.spec.name,
            source=self._device,
            destination=self._device,
            casting="no" if source.dtype.isnative else "unsafe",  # the dtype is right, only the byte order differs
        )
        self.bind_own(slot)

    def _own_tensor(self, slot: Slot) -> Tensor:
        """Memory of the program's own, which nobody may free while the program lives."""
        tensor = self.memory.tensor(slot.shape, slot.spec.dtype)
        self._leases.append(Lease(tensor.storage, f"{slot} of {slot.holder}"))
        return tensor

    def set_parameters(self, values: Sequence[tuple[Slot, np.ndarray[Any, Any]]]) -> None:
        """Copy new values to memory of the program's own; the file's are left as they are."""
        for slot, value in values:
            self.copy_in(slot, value, "set_params")
            self._point_call_at(slot)

    def copy_out(self, slot: Slot, result: Tensor, out: Any) -> None:
        """Copy ``result``, a value of ``slot``, to the array, Tensor or DLPack producer ``out``."""
        if not isinstance(out, np.ndarray | Tensor) and not hasattr(out, "__dlpack__"):
            raise InputError(f"{slot}: a {type(out).__name__} cannot be written; pass an array or a Tensor")
        ledger.copy_array(
            as_array(slot, out),
            np.asarray(result),
            cause="get_output",
            tensor=slot.spec.name,
            source=self._device,
            destination=self._device,
        )

    def complete(self) -> None:
        """Give every output without memory some; raises InputError naming inputs that have none."""
        missing = [repr(slot.spec.name) for slot in self.inputs if slot.owner is None]
        if missing:
            raise InputError(f"nothing is bound to input {', '.join(missing)}; call set_input or set_input_zero_copy")
        for slot in self.outputs:
            if slot.owner is None:
                self.bind_own(slot)

    def bind_call_inputs(self, arrays: Sequence[Any]) -> Sequence[object]:
        """Bind ``arrays`` for a call; what has to be kept alive during it besides them."""
        if len(arrays) != len(self.call_inputs):
            raise _wrong_number("input", len(arrays), self.call_inputs)
        words = self.call_words
        keep: tuple[object, ...] = ()
        for slot, value in zip(self.call_inputs, arrays):  # noqa: B905 - lengths are checked, strict costs time
            if (
                type(value) is _ndarray
                and value.dtype == slot.dtype
                and value.shape == slot.shape
                and value.flags.carray
            ):
                address = address_of(value)
            else:
                address, owner = borrow(slot, value)
                keep = (*keep, owner, slot.lend(owner))
            slot.call_address = address
            for word, offset in slot.places:
                words[word] = address + offset
        return keep

    def new_call_outputs(self) -> list[Tensor]:
        """New Tensors bound as a call's outputs."""
        words = self.call_words
        results = []
        for slot in self.call_outputs:
            if slot.is_small:
                array = _empty(slot.shape, slot.dtype)
                tensor, address = _view(array), address_of(array)
            else:
                tensor = self.memory.tensor(slot.shape, slot.spec.dtype)
                address = tensor.data_address
            for word, offset in slot.places:
                words[word] = address + offset
            results.append(tensor)
        return results

    def bind_call_outputs(self, out: Sequence[Any]) -> Sequence[object]:
        """Bind ``out`` as a call's outputs; their owners. Raises InputError where they overlap other arguments."""
        if len(out) != len(self.call_outputs):
            raise _wrong_number("output", len(out), self.call_outputs)
        borrowed = [borrow(slot, value) for slot, value in zip(self.call_outputs, out)]  # noqa: B905
        for slot, (address, _) in zip(self.call_outputs, borrowed):  # noqa: B905
            slot.call_address = address
            for word, offset in slot.places:
                self.call_words[word] = address + offset
        for slot in self.call_outputs:
            start = slot.call_address
            end = start + slot.nbytes
            for other in (*self.inputs, *self.outputs):
                if start < other.call_address + other.nbytes and other.call_address < end and other is not slot:
                    slot.check_no_overlap(start, other, other.call_address)
        owners = [owner for _, owner in borrowed]
        return [owners, [slot.lend(owner) for slot, owner in zip(self.call_outputs, owners)]]  # noqa: B905

    def check_call_states(self) -> None:
        """Raise InputError when a call's input lies in the memory that a recurrent state is about to write."""
        for source, _ in self.states:
            for other in self.call_inputs:
                source.check_no_overlap(source.address, other, other.call_address)

    def bind_state(self, source: Slot, target: Slot) -> None:
        """Make output ``source`` of each execution the input ``target`` of the next.

        Raises InputError when another input is bound to the memory of one of them.
        """
        for half in (source, target):
            for other in self.inputs:
                if half.own is not None and other is not target and other.owner is not None:
                    half.check_no_overlap(half.own.data_address, other, other.address)
        if target.owner is not None and target.owner is not target.own:
            self.copy_in(target, np.asarray(slot_tensor(target)), "bind_state")
        self.bind_own(target)
        self.bind_own(source)
        source.partner, target.partner = target, source
        self.states = (*self.states, (source, target))
        self._point_call_at(source, target)
        self.call_inputs = tuple(slot for slot in self.inputs if slot.partner is None)
        self.call_outputs = tuple(slot for slot in self.outputs if slot.partner is None)

    def swap_states(self) -> None:
        """After an execution: what it wrote is what the next reads."""
        for source, target in self.states:
            source.own, target.own = target.own, source.own
            self.bind_own(source)
            self.bind_own(target)
            self._point_call_at(source, target)

    def _point_call_at(self, *slots: Slot) -> None:
        for slot in slots:
            slot.call_address = slot.address
            for word, offset in slot.places:
                self.call_words[word] = slot.address + offset

    def check_views(self, slots: Sequence[Slot], owners: Iterable[object]) -> None:
        """Raise HostAccessError when an open host view conflicts with an execution on ``owners``, one a slot."""
        for slot, owner in zip(slots, owners, strict=True):
            if isinstance(owner, Tensor):
                start, stop = owner.byte_range
                owner.storage.check_access(start, stop, writes=not slot.is_input, what=f"the run, as {slot},")

    def queue_accesses(self, event: Event) -> None:
        """Note in the storages of bound Tensors that an execution uses them until ``event``."""
        for slot in (*self.inputs, *self.outputs, *self.parameters):
            if isinstance(slot.owner, Tensor):
                writes = not slot.is_input or slot.partner is not None
                access = Access(*slot.owner.byte_range, writes, f"the run, as {slot},")
                slot.owner.storage.queue(event, access, None)

    def record_moves(self) -> None:
        """Tell the ledger of the kernels that only move data."""
        for move in self.moves:
            ledger.record_kernel_moves(move.nbytes, tensor=move.name, device=self._device)


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


def _executor(program: Program, words: array[int], runtime: int, pool: int) -> Callable[[], object]:
    """What executes ``program`` on ``words``: for compiled code alone, the foreign function itself."""
    if not runtime:
        return partial(run_steps, program.steps, words, lambda address, count: None)
    function = _RUN(runtime)
    match program.steps:
        case (NativeStep(first, count),):
            address = words.buffer_info()[0] + first * words.itemsize
            return partial(function, ctypes.c_void_p(pool), ctypes.c_void_p(address), ctypes.c_int64(count))
        case steps:
            return partial(run_steps, steps, words, partial(function, pool))


def _wrong_number(what: str, given: int, slots: Sequence[Slot]) -> InputError:
    names = ", ".join(slot.spec.name for slot in slots) or "none"
    return InputError(f"{given} {what}s given, the program takes {len(slots)}: {names}")
