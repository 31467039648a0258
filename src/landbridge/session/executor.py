"""Executor: what a Session does its work with, one for each form of program: fixed, open, or cut into pieces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from landbridge.device.api import Device
from landbridge.tensor import Tensor

if TYPE_CHECKING:
    from landbridge.session.state import State
    from landbridge.session.state_request import StateRequest
    from landbridge.vm.planned_memory import PlannedMemory


class Executor(Protocol):
    """A bound program: its methods are those of Session of the same name, with the same results and errors.

    It knows no lock and no threads: whoever calls a method, other than ``planned_memory`` and ``hold_scopes``, holds
    the lock of the Entry that it was made with. It is made with the weights that ``set_params`` has replaced so far.
    Another of the same class may continue what it does, once (``Replacement``).
    """

    @property
    def planned_memory(self) -> tuple[PlannedMemory, ...]:
        """Returns the bytes that runs need in each scope, besides weights and buffers of the caller."""

    @property
    def has_states(self) -> bool:
        """Returns whether outputs of a run are inputs of the next one, so that no other instance can run a call."""

    @property
    def kernel_device(self) -> Device | None:
        """Returns the device that runs all of the program; None where several do, or the CPU, or sizes decide it."""

    def prepare(self, sizes: Mapping[str, int | Sequence[int]]) -> None:
        """Bind the program for these values of its open dimensions, by name, in advance."""

    def hold_scopes(self) -> AbstractContextManager[object]:
        """Returns a context manager that holds the acquired scopes."""

    def set_input(self, name: str | int, value: Any) -> None:
        """Copy ``value`` to input ``name``."""

    def set_input_zero_copy(self, name: str | int, value: Any) -> None:
        """Bind input ``name`` to the memory of ``value``."""

    def set_output_zero_copy(self, index: int | str, out: Any) -> None:
        """Bind output ``index`` to the memory of ``out``."""

    def register_buffers(self, name: str | int, values: Sequence[Any]) -> None:
        """Prepare ``values`` to be bound to input or output ``name`` many times."""

    def get_input(self, name: str | int) -> Tensor:
        """Returns the memory bound to input ``name``."""

    def get_output(self, index: int | str, out: Any = None) -> Any:
        """Returns output ``index`` of the last run, or ``out`` with a copy of it."""

    def set_params(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Copy new values to weights, all or none; returns the copies by name, for other executors of the program."""

    def borrow_params(self, values: Mapping[str, Tensor]) -> Callable[[], object]:
        """Returns a function that binds weights to the memory of ``values`` in place; raises, and changes nothing,
        where one cannot be.
        """

    def get_params(self) -> dict[str, Tensor]:
        """Returns the weights that ``set_params`` may replace, read-only; of borrowed ones any earlier value."""

    def run(self) -> None:
        """Run the program on what is bound."""

    def make_ready(self) -> None:
        """Do all of a run that may raise before it starts; ``execute`` is next."""

    def execute(self, begun: Callable[[], object]) -> None:
        """Do the rest of a run, in any thread; calls ``begun`` once no later work can come before it."""

    def call(self, arrays: Sequence[Any], out: Any) -> Any:
        """Returns the results of a run on ``arrays``, which are bound for it alone; ``out`` as in a call of a
        Session.
        """

    def bind_pair(self, output: str | int, input: str | int) -> None:
        """Make ``output`` of each run the ``input`` of the next."""

    def bind_states(self, request: StateRequest) -> State:
        """Returns a State as ``request`` says, which runs continue from then on."""

    def continue_from(self, before: Any) -> None:
        """Take over, from an executor of the same class that runs no more and whose program has the same inputs,
        outputs and aliases, what is bound for runs, the results of the last one, and the states.

        Memory stays where it is, unless this program cannot use it there. Raises what binding raises; ``before`` is as
        it was then.
        """
