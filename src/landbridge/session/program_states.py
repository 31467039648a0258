"""ProgramStates: the state that runs of one bound program continue, and the checks of the steps that a run makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from landbridge.device.state import concerns
from landbridge.executable.executable import Executable
from landbridge.executable.parts import TensorSpec, program_name
from landbridge.session.length_checks import LengthChecks
from landbridge.session.state_request import StateRequest
from landbridge.vm.bound_program import BoundProgram
from landbridge.vm.slot import Slot

if TYPE_CHECKING:
    from landbridge.session.state import State
    from landbridge.session.state_group import Halves, StateGroup

#: The program of an Executable without open dimensions.
_MAIN = program_name(0)


class ProgramStates:
    """The states of ``program``, the bound ``executable``; it is the StateMemory of those that a State holds.

    ``make_steps``: whether a run continues a state, or has a length that is checked before it writes.
    """

    def __init__(self, executable: Executable, program: BoundProgram) -> None:
        self._executable, self._program, self._states = executable, program, program.states
        self._frame = program.runs.frame
        self.group: StateGroup | None = None
        #: Of caches whose lengths are values of the run, where no State checks them.
        self._lengths = LengthChecks(_MAIN, executable) or None
        self.make_steps = self._lengths is not None

    def __bool__(self) -> bool:
        return bool(self._states.pairs)

    @property
    def written_slots(self) -> tuple[Slot, ...]:
        """Returns what runs write: the outputs, and the inputs that are states."""
        return (*self._frame.outputs, *(half for _, half in self._states.pairs))

    def bind_pair(self, output: Slot, input: Slot) -> None:
        """Make ``output`` of each run the ``input`` of the next. Raises InputError as ``RecurrentStates.bind``."""
        if self.group is not None:
            self.group.refuse_pairs()
        try:
            self._states.bind(output, input)
        finally:
            self._note()

    def bind(self, request: StateRequest) -> State:
        """Returns a State as ``request`` says, which runs continue from then on."""
        from landbridge.session.state_binding import first_state, further_state

        states, bound = self._states, {}
        inputs, outputs = ({slot.spec.name: slot for slot in of} for of in (self._frame.inputs, self._frame.outputs))
        slots = inputs | outputs
        places = {name: slot.binding for name, slot in slots.items() if slot.binding is not None}
        if request.memory is not None:
            states.check_used_in_place()
            bound = {
                name: slot.tensor() for name, slot in slots.items() if slot.owner is not None and slot.partner is None
            }
        if self.group is not None:
            return further_state(self.group, self._executable, request, bound, places)

        def bind(
            specs: Sequence[tuple[TensorSpec, TensorSpec]], memory: Sequence[Halves] | None, sizes: Mapping[str, int]
        ) -> None:
            try:
                states.bind_all([(outputs[output.name], inputs[input.name]) for output, input in specs], memory)
            finally:
                self._note()

        state, self.group = first_state(
            self._executable, self._program.entry, self, request, states.pairs, bound, places, bind
        )
        return state

    def _note(self) -> None:
        self.make_steps = bool(self._states.pairs) or self._lengths is not None

    # Steps ------------------------------------------------------------------------------------------------------

    def check_run(self) -> None:
        """Check a run on what is bound against the steps that the state, or a cache, has, before it writes."""
        if self.group is None and self._lengths is None:
            return
        given = {slot.spec.name: slot for slot in self._frame.inputs}
        self._check(lambda name: given[name].tensor())

    def check_call(self, arrays: Sequence[Any]) -> None:
        """Check a call on ``arrays``, one for each input that is no state, as ``check_run`` does a run."""
        calls = self._program.calls
        if self:
            if concerns[0]:
                calls.frame.wait_queued()
            self._states.check_call()
        given = dict(zip([slot.spec.name for slot in calls.inputs], arrays, strict=True))
        self._check(given.__getitem__)

    def _check(self, read: Any) -> None:
        if self.group is not None:
            self.group.begin(_MAIN, {}, read)
        elif self._lengths is not None:
            self._lengths.check(read)

    def end_step(self) -> None:
        """Let the next run read what this one wrote, and note how many steps there are."""
        if self._states.pairs:
            self._states.swap()
            if self.group is not None:
                self.group.commit()

    def continue_from(self, before: ProgramStates) -> None:
        """Continue the states of ``before``, of a program with the same inputs, outputs and aliases."""
        inputs, outputs = ({slot.spec.name: slot for slot in of} for of in (self._frame.inputs, self._frame.outputs))
        pairs = [(outputs[output.spec.name], inputs[input.spec.name]) for output, input in before._states.pairs]
        if pairs:
            self._states.bind_all(pairs, before._states.memory())
        self._note()
        if before.group is not None:
            self.group = before.group
            self.group.memory = self

    # StateMemory ------------------------------------------------------------------------------------------------

    def take(self) -> tuple[Halves, ...] | None:
        return self._states.memory()

    def put(self, memory: Sequence[Halves] | None, sizes: Mapping[str, int], *, is_given: bool = False) -> None:
        states = self._states
        if memory is None:
            memory = [states.allocate(number, target.shape) for number, (_, target) in enumerate(states.pairs)]
        for number, halves in enumerate(memory):
            states.put(number, halves)

    def allocate(self, number: int, shape: Sequence[int]) -> Halves:
        return self._states.allocate(number, shape)
