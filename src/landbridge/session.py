"""Session: a compiled program bound to devices, ready to run again and again.

Everything a run needs is decided when the Session is made: a run is one native call over bound memory. Inputs
and outputs bound by reference are used in place and kept alive while bound.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from landbridge.device.device import Device
from landbridge.errors import InputError
from landbridge.executable.executable import Executable
from landbridge.executable.parts import TensorSpec
from landbridge.memory import ledger
from landbridge.memory.accesses import open_views, queued_accesses
from landbridge.memory.allocators.memory_cfg import MemoryCfg
from landbridge.memory.host_array import address_of_known
from landbridge.tensor import Tensor
from landbridge.vm.background import AsyncRun, Worker
from landbridge.vm.bound_program import BoundProgram, read_only, session_name, slot_tensor
from landbridge.vm.entry import Entry
from landbridge.vm.executors import Execute
from landbridge.vm.home import bind_devices
from landbridge.vm.planned_memory import PlannedMemory, planned_memory
from landbridge.vm.slot import Slot
from landbridge.vm.slot_names import by_name_and_index, find_slot, unknown_slot
from landbridge.vm.thread_pool import default_threads
from landbridge.vm.turn import Turn

_ndarray = np.ndarray


class Session:
    """``executable`` bound to ``device`` (or ``devices``, by vdevice name) and to ``num_threads`` threads.

    ``num_threads`` None takes every processor this process may use; a program whose every call is small runs on the
    calling thread alone. ``memory_cfg`` chooses the allocator of each (device, scope), as in
    ``{("cpu:0", "global"): "naive"}``; None leaves that to the process. One thread at a time may use a Session,
    another gets SessionBusyError; Sessions share the constants of their Executable. Raises BindError or
    ExecutableError when the program does not fit the devices or this machine.
    """

    def __init__(
        self,
        executable: Executable,
        device: Device | str = "cpu",
        *,
        devices: Mapping[str, Device | str] | None = None,
        num_threads: int | None = None,
        memory_cfg: MemoryCfg | None = None,
    ) -> None:
        threads = default_threads() if num_threads is None else num_threads
        if type(threads) is not int or threads < 1:
            raise InputError(f"num_threads is {num_threads!r}; legal: None, or a number from 1")
        self._entry = entry = Entry()
        self._executable = executable
        homes = bind_devices(executable, device, devices, memory_cfg)
        self._program = program = BoundProgram(executable, homes, threads, entry)
        self._inputs = by_name_and_index(program.inputs)
        self._outputs = by_name_and_index(program.outputs)
        self._parameters = {slot.spec.name: slot for slot in program.parameters}
        # The runs' own view of the program, read on every call.
        self._execute, self._execute_call = program.execute, program.execute_call
        self._words = program.words
        self._slots = (*program.inputs, *program.outputs, *program.parameters)
        self._written: tuple[Slot, ...] = program.outputs
        self._listed, self._has_states = program.listed, False
        self._complete = False
        self._worker: Worker | None = None

    @property
    def executable(self) -> Executable:
        """What the Session runs."""
        return self._executable

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Name, shape and dtype of each input, in order, and its strides where they are not dense."""
        return self._executable.main.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Name, shape and dtype of each output, in order."""
        return self._executable.main.outputs

    @property
    def params(self) -> tuple[TensorSpec, ...]:
        """Name, shape and dtype of each weight that ``set_params`` may replace."""
        return self._executable.main.parameters

    @property
    def planned_memory(self) -> tuple[PlannedMemory, ...]:
        """What its runs need of each scope, in bytes, besides weights and buffers of the caller."""
        by_value = [slot.spec for slot in self._program.inputs if slot.own is not None]
        return planned_memory(self._executable, self._program.memory, self._program.threads, by_value)

    def __repr__(self) -> str:
        return session_name(self._executable.main)

    def set_input(self, name: str | int, value: Any) -> None:
        """Give input ``name`` (or index) the values of ``value`` now; later writes to ``value`` have no effect.

        ``value`` is an array of any strides, a Tensor, a DLPack producer, a number or a nested list, of the
        input's shape and dtype; else InputError. The ledger shows the copy, cause ``set_input``.
        """
        turn = self._entry.enter()
        try:
            slot = find_slot("input", name, self._inputs)
            self._program.copy_in(slot, value, "set_input")
        finally:
            self._entry.give_back(turn)

    def set_input_zero_copy(self, name: str | int, value: Any) -> None:
        """Bind input ``name`` (or index) to the memory of ``value``: the next run reads what is there then.

        ``value`` is an array, Tensor or DLPack producer of the input's shape and dtype, C-contiguous, or with the
        strides of ``inputs`` where an InputSpec stated some; it is kept alive while bound. Raises InputError when it
        does not fit or overlaps an output, ZeroCopyError when its memory cannot be used in place; what was bound then
        stays bound.
        """
        entry = self._entry
        try:
            turn = entry.take()
        except IndexError:
            entry.refuse()
        try:
            try:
                slot = self._inputs[name]
            except (KeyError, TypeError):
                raise unknown_slot("input", name, self._inputs) from None
            owner: object = value
            if (
                type(value) is slot.array_type
                and value.dtype == slot.dtype
                and value.shape == slot.shape
                and value.flags.carray
            ):
                address = address_of_known(value)
            else:
                address, owner = self._program.borrow(slot, value)
            if slot.partner is not None:
                raise InputError(f"{slot} is a recurrent state, whose memory swaps at each run; use set_input")
            end = address + slot.nbytes
            for other in self._written:
                if address < other.end and other.address < end:
                    slot.check_no_overlap(address, other, other.address)
            words = self._words
            if type(owner) is not _ndarray:
                slot.bind(words, address, owner)
                return
            try:
                for word, offset in slot.places:
                    words[word] = address + offset
                slot.address, slot.end, slot.owner, slot.storage, slot.lease = address, end, owner, None, None
            except BaseException:  # as in Slot.bind
                slot.bind(words, address, owner)
                raise
        finally:
            entry.give_back(turn)

    def register_buffers(self, name: str | int, values: Sequence[Any]) -> None:
        """Prepare ``values`` to be bound to input or output ``name`` again and again, as the frames of a camera are.

        A device that uses memory of the host in place imports each now, so that later runs import nothing. They are
        kept alive with the Session, or until other ones are registered for ``name``. Conditions and errors are those
        of ``set_input_zero_copy`` and ``set_output_zero_copy``; when one does not fit, none is registered.
        """
        turn = self._entry.enter()
        try:
            slots = self._outputs if name in self._outputs and name not in self._inputs else self._inputs
            self._program.buffers.register(find_slot("input or output", name, slots), values)
        finally:
            self._entry.give_back(turn)

    def get_input(self, name: str | int) -> Tensor:
        """The memory bound to input ``name`` (or index); writable through its host view unless lent read-only.

        An input with nothing bound gets memory of the Session, zeroed.
        """
        turn = self._entry.enter()
        try:
            slot = find_slot("input", name, self._inputs)
            return self._program.bind_own(slot) if slot.owner is None else slot_tensor(slot)
        finally:
            self._entry.give_back(turn)

    def set_params(self, values: Mapping[str, Any]) -> None:
        """Give weights new values, by the names they have in the model; the next run uses them.

        Only weights named by ``compile(..., mutable=)`` can be given, to this Session alone: the Executable keeps
        its own. Values are copied, as by ``set_input``, the ledger's cause is ``set_params``. Raises InputError when
        one does not fit, and then changes none.
        """
        turn = self._entry.enter()
        try:
            found = [(find_slot("parameter", name, self._parameters), value) for name, value in values.items()]
            self._program.set_parameters(found)
        finally:
            self._entry.give_back(turn)

    def get_params(self) -> dict[str, Tensor]:
        """The weights that ``set_params`` may replace, as read-only Tensors over their memory, by name.

        They show later values too, once ``set_params`` has given the Session memory of its own.
        """
        turn = self._entry.enter()
        try:
            return {name: read_only(slot_tensor(slot)) for name, slot in self._parameters.items()}
        finally:
            self._entry.give_back(turn)

    def set_output_zero_copy(self, index: int | str, out: Any) -> None:
        """Bind output ``index`` (or name) to the memory of ``out``: the next runs write their results there.

        Conditions and errors as for ``set_input_zero_copy``; ``out`` must be writable and overlap nothing bound.
        """
        turn = self._entry.enter()
        try:
            slot = find_slot("output", index, self._outputs)
            address, owner = self._program.borrow(slot, out)
            if slot.partner is not None:
                raise InputError(f"{slot} is a recurrent state, whose memory swaps at each run; use get_output")
            for other in (*self._program.inputs, *self._program.outputs):
                if other is not slot and other.owner is not None:
                    slot.check_no_overlap(address, other, other.address)
            slot.bind(self._words, address, owner)
        finally:
            self._entry.give_back(turn)

    def get_output(self, index: int | str, out: Any = None) -> Any:
        """Output ``index`` (or name) of the last ``run`` as a Tensor over its own memory, valid until the next run.

        With ``out``, an array or Tensor of the output's shape and dtype, the result is copied there and ``out``
        is returned; the ledger shows the copy, cause ``get_output``.
        """
        turn = self._entry.enter()
        try:
            slot = find_slot("output", index, self._outputs)
            # a state's last value lies where the next run reads it
            holder = slot.partner or slot
            if holder.owner is None:
                raise InputError(f"{slot} has no memory yet; call run(), or bind some with set_output_zero_copy")
            result = slot_tensor(holder)
            if out is not None:
                self._program.copy_out(slot, result, out)
            return result if out is None else out
        finally:
            self._entry.give_back(turn)

    def run(self) -> None:
        """Run on what is bound. Outputs with nothing bound get memory of the Session at the first run.

        Raises InputError naming the inputs that nothing is bound to.
        """
        entry = self._entry
        try:
            turn = entry.take()
        except IndexError:
            entry.refuse()
        try:
            if not self._complete:
                self._program.complete()
                self._complete = True
            if queued_accesses[0]:
                self._wait_queued()
            execute = self._execute
            if self._listed is not None and ledger.is_active():
                execute = self._listed[0]
            if entry.shares:
                entry.in_order(self._program.orders(), partial(self._execute_shared, execute))
            else:
                if open_views:
                    self._check_views()
                execute()
            if self._has_states:
                self._program.swap_states()
        finally:
            entry.give_back(turn)

    def run_async(self) -> AsyncRun:
        """Start a run on what is bound and return at once; ``wait(timeout)`` of the result ends it.

        Until then what is bound stays alive, host views of the bound Tensors wait for it where they must, and
        every other method of this Session raises SessionBusyError. Raises as ``run`` does, before it starts; what
        the run itself raises comes from ``wait``.
        """
        entry = self._entry
        pending = AsyncRun()
        turn = entry.enter()
        tickets = [turn]  # who pops it has the run, whatever interrupts the other
        try:
            if not self._complete:
                self._program.complete()
                self._complete = True
            self._wait_queued()
            if open_views:
                self._check_views()
            self._worker = worker = self._worker or Worker(f"{self!r} run_async")
            entry.pending = pending
            started = threading.Event() if entry.shares else None  # what is called next comes after it
            worker.submit(partial(self._finish, pending, tickets, started))
            if started is not None:
                started.wait()
        except BaseException as error:
            self._take_back(pending, tickets, error)
            raise
        return pending

    def _take_back(self, pending: AsyncRun, tickets: list[Turn], error: BaseException) -> None:
        """Give up a run that the worker has not begun."""
        try:
            turn = tickets.pop()
        except IndexError:
            return
        self._entry.pending = None
        self._entry.give_back(turn)
        pending.complete(error)

    def _finish(self, pending: AsyncRun, tickets: list[Turn], started: threading.Event | None) -> None:
        """In the worker: execute with the turn that ``run_async`` took, and give it back."""
        try:
            turn = tickets.pop()
        except IndexError:
            return
        error: BaseException | None = None
        execute = self._execute
        if self._listed is not None and ledger.is_active():
            execute = self._listed[0]
        try:
            if started is not None:
                self._entry.in_order(self._program.orders(), partial(self._begin_shared, started, execute))
            else:
                execute()
            if self._has_states:
                self._program.swap_states()
        except BaseException as raised:
            error = raised
        finally:
            self._entry.pending = None
            self._entry.give_back(turn)
            pending.complete(error)
            if started is not None:
                started.set()

    def _execute_shared(self, execute: Execute) -> None:
        """Execute when no other Session does that shares what is bound."""
        if open_views:
            self._check_views()
        execute()

    def _begin_shared(self, started: threading.Event, execute: Execute) -> None:
        started.set()
        self._execute_shared(execute)

    def _wait_queued(self) -> None:
        """Wait for copies of devices, and runs of other Sessions, that a run must come after."""
        for slot in self._slots:
            if slot.storage is not None and slot.storage.has_queued:
                slot.wait(slot.owner)

    def _check_call_views(self, arrays: Sequence[Any], results: Sequence[Any]) -> None:
        self._entry.let_watchers_go()
        call = self._program.call
        self._program.check_views((*call.inputs, *call.outputs), (*arrays, *results))

    def _call_shared(self, execute: Execute, arrays: Sequence[Any], results: Sequence[Any]) -> None:
        if open_views:
            self._check_call_views(arrays, results)
        execute()

    def _check_views(self) -> None:
        self._entry.let_watchers_go()
        slots = (*self._program.inputs, *self._program.outputs)
        self._program.check_views(slots, [slot.owner for slot in slots])

    def __call__(self, *arrays: Any, out: Sequence[Any] | None = None) -> list[Any]:
        """Run on ``arrays``, by reference for this call; the outputs: new Tensors, or what ``out`` lists.

        One array for each input and one of ``out`` for each output, in order, recurrent states left out. Tensors
        returned are never overwritten by later runs; what ``run`` has bound stays bound. Conditions and errors
        are those of ``set_input_zero_copy`` and ``set_output_zero_copy``.
        """
        entry = self._entry
        try:
            turn = entry.take()
        except IndexError:
            entry.refuse()
        try:
            program = self._program
            call = program.call
            keep = call.bind_inputs(arrays)
            if out is None:
                results: list[Any] = call.new_outputs()
            else:
                results = list(out)
                keep = (*keep, *call.bind_outputs(results))
            if self._has_states:
                program.check_call_states()
            execute = self._execute_call
            if self._listed is not None and ledger.is_active():
                execute = self._listed[1]
            if entry.shares:
                entry.in_order(program.call_orders(), partial(self._call_shared, execute, arrays, results))
            else:
                if open_views:
                    self._check_call_views(arrays, results)
                execute()
            if self._has_states:
                program.swap_states()
            del keep  # alive until here
            return results
        finally:
            entry.give_back(turn)

    def bind_state(self, output: str | int, input: str | int) -> None:
        """Make ``output`` of each run the ``input`` of the next: two buffers that swap, no copy.

        The state starts with the input's value if it has one, else with zeros; ``set_input`` sets it,
        ``get_output`` reads it. Raises InputError when shapes or dtypes differ or one of them is a state already.
        """
        turn = self._entry.enter()
        try:
            source = find_slot("output", output, self._outputs)
            target = find_slot("input", input, self._inputs)
            for slot in (source, target):
                if slot.partner is not None:
                    raise InputError(f"{slot} is a recurrent state already, with {slot.partner}")
            if (source.shape, source.dtype) != (target.shape, target.dtype):
                raise InputError(
                    f"{source} is {source.spec.dtype}{source.shape}, {target} is {target.spec.dtype}{target.shape}; "
                    "the two halves of a state must be equal"
                )
            self._program.bind_state(source, target)
        finally:
            self._has_states = bool(self._program.states)
            self._written = (*self._program.outputs, *(half for _, half in self._program.states))
            self._entry.give_back(turn)
