"""FixedExecutor: the Executor of a program whose sizes are all known. A run is one native call over bound memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from landbridge.device.state import concerns
from landbridge.errors import BindError, InputError, ShapeError, ZeroCopyError
from landbridge.executable.executable import Executable
from landbridge.memory import ledger
from landbridge.memory.accesses import open_views
from landbridge.memory.host_array import address_of_known
from landbridge.session.fence_waits import sole_device
from landbridge.session.given_parameters import GivenParameters, named_values
from landbridge.session.program_states import ProgramStates
from landbridge.session.session_options import BindOptions
from landbridge.session.state_request import StateRequest
from landbridge.tensor import Tensor
from landbridge.vm.arena import ProgramArena
from landbridge.vm.bound_program import BoundProgram, read_only
from landbridge.vm.device_binding import bind_devices
from landbridge.vm.entry import Entry
from landbridge.vm.host_access import execute_in_order
from landbridge.vm.named import in_order
from landbridge.vm.slot_names import by_name_and_index, find_slot, unknown_slot
from landbridge.vm.thread_pool import thread_count

if TYPE_CHECKING:
    from landbridge.session.state import State
    from landbridge.vm.planned_memory import PlannedMemory
    from landbridge.vm.resizing import Resizing
    from landbridge.vm.size_fit import SizeFit

_ndarray = np.ndarray


class FixedExecutor:
    """The Executor of ``executable`` with these ``options``, used by who holds the lock of ``entry``.

    ``params`` are the weights that were replaced so far. ``arena`` has the memory of storages, where several programs
    run one after the other. Raises BindError or ExecutableError where the program does not fit the devices or this
    machine.
    """

    def __init__(
        self,
        executable: Executable,
        entry: Entry,
        options: BindOptions,
        params: GivenParameters,
        arena: ProgramArena | None = None,
    ) -> None:
        threads = thread_count(options.num_threads)
        bindings = bind_devices(executable, options.device, options.devices, options.memory_cfg)
        self.executable, self._entry = executable, entry
        self.program = program = BoundProgram(
            executable, bindings, threads, entry, options.host_access, arena, options.memory_limit
        )
        self.kernel_device = sole_device(executable, bindings)
        self._runs, self._calls = program.runs, program.calls
        self._frame = frame = program.runs.frame
        #: The slots of runs, by index and by name.
        self.input_slots, self.output_slots = by_name_and_index(frame.inputs), by_name_and_index(frame.outputs)
        self.parameter_slots = {slot.spec.name: slot for slot in frame.parameters}
        #: Whether all inputs and outputs are bound for the next run.
        self.is_complete = False
        # The program as runs see it, read at every run.
        self._execute, self._listed = frame.execute, frame.listed
        self._states = ProgramStates(executable, program)
        self._note_states()
        params.give(self, self.parameter_slots)

    @property
    def planned_memory(self) -> tuple[PlannedMemory, ...]:
        from landbridge.vm.planned_memory import planned_memory

        by_value = [slot.spec for slot in self._frame.inputs if slot.owned is not None]
        return planned_memory(self.executable, self.program.memory, self.program.threads, by_value)

    @property
    def has_states(self) -> bool:
        return bool(self._states)

    def prepare(self, sizes: Mapping[str, int | Sequence[int]]) -> None:
        if sizes:
            raise ShapeError(f"the program has no dimension {next(iter(sizes))!r}; all of its sizes are known")

    def hold_scopes(self) -> AbstractContextManager[object]:
        return self.program.hold_scopes()

    # What is bound ----------------------------------------------------------------------------------------------

    def set_input(self, name: str | int, value: Any) -> None:
        slot = find_slot("input", name, self.input_slots)
        if self._states.group is not None:
            self._states.group.check_settable(slot.spec.name)
        self._runs.copy_in(slot, value, "set_input")

    def set_input_zero_copy(self, name: str | int, value: Any) -> None:
        try:
            slot = self.input_slots[name]
        except (KeyError, TypeError):
            raise unknown_slot("input", name, self.input_slots) from None
        if (
            type(value) is slot.array_type
            and value.dtype is slot.dtype
            and value.shape == slot.shape
            and value.flags.carray
        ):
            address, owner = address_of_known(value), value
        else:
            address, owner = self._runs.borrow(slot, value)
        if slot.partner is not None:
            raise InputError(f"{slot} is a recurrent state, whose memory swaps at each run; use set_input")
        end = address + slot.nbytes
        for other in self._written:
            if (address < other.end and other.address < end) or other.slides is not None:
                slot.check_no_overlap(address, other, other.address)
        if type(owner) is not _ndarray:
            self._runs.bind(slot, address, owner)
            return
        words = slot.words
        try:
            for word, offset in slot.places:
                words[word] = address + offset
            slot.address, slot.end, slot.owner, slot.lease = address, end, owner, None
        except BaseException:  # the same as in Slot.bind
            slot.bind(address, owner)
            raise

    def set_output_zero_copy(self, index: int | str, out: Any) -> None:
        slot, runs = find_slot("output", index, self.output_slots), self._runs
        address, owner = runs.borrow(slot, out)
        if slot.partner is not None:
            raise InputError(f"{slot} is a recurrent state, whose memory swaps at each run; use get_output")
        runs.check_no_overlap(slot, address, runs.frame.slots)
        runs.bind(slot, address, owner)

    def register_buffers(self, name: str | int, values: Sequence[Any]) -> None:
        slots = self.output_slots if name in self.output_slots and name not in self.input_slots else self.input_slots
        self._runs.buffers.register(find_slot("input or output", name, slots), values)

    def get_input(self, name: str | int) -> Tensor:
        slot = find_slot("input", name, self.input_slots)
        return self._runs.bind_owned(slot) if slot.owner is None else slot.tensor()

    def get_output(self, index: int | str, out: Any = None) -> Any:
        slot = find_slot("output", index, self.output_slots)
        holder = slot.partner or slot  # a state's last value is where the next run reads it
        if holder.owner is None:
            raise InputError(
                f"{slot} has no memory yet; call run(), or bind some with set_output_zero_copy; session.outputs has "
                "shapes and dtypes before that"
            )
        result = holder.tensor()
        if out is None:
            return result
        self._runs.copy_out(slot, result, out)
        return out

    def set_params(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        named = named_values(values).items()
        found = [(find_slot("parameter", name, self.parameter_slots), value) for name, value in named]
        self.program.set_parameters(found)
        return {slot.spec.name: slot.tensor() for slot, _ in found}

    def borrow_params(self, values: Mapping[str, Tensor]) -> Callable[[], object]:
        return self.program.borrow_parameters([(self.parameter_slots[name], value) for name, value in values.items()])

    def get_params(self) -> dict[str, Tensor]:
        return {name: read_only(slot.tensor()) for name, slot in self.parameter_slots.items()}

    # Runs -------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        if self._is_plain and not (concerns[0] or open_views or self._entry.shares):
            execute = self._execute
            execute()  # all that most runs do
        else:
            self._prepare(waits=concerns[0] > 0)
            self.execute(_nothing)

    def make_ready(self) -> None:
        self._prepare(waits=True)

    def _prepare(self, *, waits: bool) -> None:
        """Bind what is not bound, and do the checks of a run; ``waits`` for queued copies and runs."""
        if not self.is_complete:
            self._runs.complete()
            self._set_complete(True)
        if waits:
            self._frame.wait_queued()
        if self._makes_steps:
            self._states.check_run()
        if open_views:
            self._runs.check_views()

    def execute(self, begun: Callable[[], object]) -> None:
        execute = self._execute
        if self._listed is not None and ledger.is_active():
            execute = self._listed
        if self._entry.shares:
            execute_in_order(self._frame, execute, self._runs.check_views, begun)
        else:
            execute()
        if self._makes_steps:
            self._states.end_step()

    def _set_complete(self, complete: bool) -> None:
        """Note whether all inputs and outputs are bound; and what else the next run does beside executing."""
        self.is_complete = complete
        self._is_plain = complete and self._listed is None and not self._makes_steps

    def call(self, arrays: Sequence[Any], out: Any) -> Any:
        calls = self._calls
        names = None
        try:
            keep = calls.bind_inputs(arrays)
        except (InputError, ZeroCopyError):
            if len(arrays) != 1 or not isinstance(arrays[0], Mapping):
                raise
            names = [slot.spec.name for slot in calls.outputs]
            arrays = in_order("input", arrays[0], [slot.spec.name for slot in calls.inputs])
            out = in_order("output", out, names) if isinstance(out, Mapping) else out
            keep = calls.bind_inputs(arrays)
        if out is None:
            results: list[Any] = calls.new_outputs()
        else:
            results = list(out)
            keep = (*keep, *calls.bind_outputs(results))
        if self._makes_steps:
            self._states.check_call(arrays)
        frame = calls.frame
        execute = frame.execute
        if frame.listed is not None and ledger.is_active():
            execute = frame.listed
        if self._entry.shares:
            execute_in_order(frame, execute, partial(calls.check_views, arrays, results), _nothing)
        else:
            if open_views:
                calls.check_views(arrays, results)
            execute()
        if self._makes_steps:
            self._states.end_step()
        if keep:  # alive until here
            del keep
            calls.release()
        return results if names is None else dict(zip(names, results, strict=True))

    def let_results_go(self) -> None:
        """Release the memory of results: what a call returned, and what runs write. The next run allocates new."""
        self._calls.release()
        self._runs.let_outputs_go()
        self._set_complete(False)

    # States -----------------------------------------------------------------------------------------------------

    def bind_pair(self, output: str | int, input: str | int) -> None:
        try:
            self._states.bind_pair(
                find_slot("output", output, self.output_slots), find_slot("input", input, self.input_slots)
            )
        finally:
            self._note_states()

    def bind_states(self, request: StateRequest) -> State:
        try:
            return self._states.bind(request)
        finally:
            self._note_states()

    def _note_states(self) -> None:
        self._makes_steps, self._written = self._states.make_steps, self._states.written_slots
        self._set_complete(self.is_complete)

    def continue_from(self, before: FixedExecutor) -> None:
        runs, frame, theirs = self._runs, self._frame, before._frame
        pairs = list(zip((*frame.inputs, *frame.outputs), (*theirs.inputs, *theirs.outputs), strict=True))
        staged = frame.staging is not None or theirs.staging is not None
        if staged or any(mine.binding != other.binding for mine, other in pairs):
            raise BindError("inputs and outputs are in other memory of the two programs, or copied to it; runs go on")
        for mine, other in pairs:
            if other.owner is None or other.partner is not None:
                continue
            if other.owner is other.owned:
                runs.take_over(mine, other.owned)
            else:
                runs.bind(mine, *runs.borrow(mine, other.owner))
        self._states.continue_from(before._states)
        self._note_states()

    # Other sizes ------------------------------------------------------------------------------------------------

    def resize_runs(self, resizing: Resizing, fit: SizeFit, before: SizeFit | None) -> None:
        """Resize runs to ``fit`` from ``before``; None: from any sizes. What is bound to inputs and outputs of other
        sizes is unbound, except recurrent states.
        """
        if before is not None and fit.has_io_of(before):
            resizing.set_words(self._frame, fit, before)
        else:
            changed = resizing.changes(self._frame, fit)
            self._runs.release_for_resize(changed)
            self.program.states.resize_runs(partial(resizing.resize, self._frame, fit, changed))
            self.is_complete = False
        self._execute, self._listed = self._frame.execute, self._frame.listed
        self._set_complete(self.is_complete)

    def resize_calls(self, resizing: Resizing, fit: SizeFit, before: SizeFit | None) -> None:
        """Resize calls to ``fit`` from ``before``, as ``resize_runs`` does."""
        frame = self._calls.frame
        if before is not None and fit.has_io_of(before):
            resizing.set_words(frame, fit, before)
            return
        self.program.states.resize_calls(partial(resizing.resize, frame, fit, resizing.changes(frame, fit)))


def _nothing() -> None:
    pass
