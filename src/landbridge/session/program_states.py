"""ProgramStates: the memory of the state that runs of one bound program continue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from landbridge.session.state_group import Halves
from landbridge.vm.recurrent_states import RecurrentStates


class ProgramStates:
    """The StateMemory of a Session without open dimensions: that of its program's ``states``."""

    def __init__(self, states: RecurrentStates) -> None:
        self._states = states

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
