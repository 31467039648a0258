"""Instances: an open program at one choice of its sizes, ready for runs and calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from landbridge.executable.executable import Executable
from landbridge.executable.parts import TensorSpec
from landbridge.session.session import Session, bound_program_of, resize_calls, resize_runs, take_states
from landbridge.vm.planned_memory import PlannedMemory, planned_memory
from landbridge.vm.resizing import Resizing, SizeFit

if TYPE_CHECKING:
    from landbridge.session.state_group import Halves


class Instance(Protocol):
    """A program at one choice of sizes; ``session``, which runs it, may serve other sizes too."""

    @property
    def session(self) -> Session:
        """Returns the Session that runs the program."""

    @property
    def planned_memory(self) -> tuple[PlannedMemory, ...]:
        """Returns the memory that one execution at these sizes needs, an entry for each scope."""

    def shape_of(self, spec: TensorSpec) -> tuple[int, ...]:
        """Returns the shape of ``spec``, an input of the open program, at these sizes."""

    def take_states(self, inputs: Sequence[TensorSpec], memory: Sequence[Halves] | None = None) -> None:
        """Resize the Session's recurrent states to these sizes; ``inputs`` are the inputs of the states, in the order
        in which these were bound, as the open program declares them.

        States whose shape changes become zeros. With ``memory``, one (written, read) pair of Tensors of the new shape
        for each state, they are bound to that and keep its content.
        """

    def keeps_bindings(self) -> bool:
        """Returns whether ``for_runs`` leaves what is bound to inputs and outputs as it is."""

    def for_runs(self) -> Session:
        """Returns the Session after resizing its runs to these sizes. Where inputs or outputs had other sizes, nothing
        but states is bound to them any more.
        """

    def for_calls(self) -> Session:
        """Returns the Session, with its calls resized to these sizes."""


class OwnedInstance:
    """An instance with its own Session, for programs that cannot be rebound to other sizes."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def shape_of(self, spec: TensorSpec) -> tuple[int, ...]:
        return self._spec_of(spec).shape

    def take_states(self, inputs: Sequence[TensorSpec], memory: Sequence[Halves] | None = None) -> None:
        if memory is not None:  # its states never had other sizes
            take_states(self.session, [self._spec_of(spec) for spec in inputs], memory)

    def _spec_of(self, spec: TensorSpec) -> TensorSpec:
        return next(each for each in self.session.inputs if each.name == spec.name)

    @property
    def planned_memory(self) -> tuple[PlannedMemory, ...]:
        return self.session.planned_memory

    def keeps_bindings(self) -> bool:
        return True

    def for_runs(self) -> Session:
        return self.session

    for_calls = for_runs


class SharedSession:
    """A Session that all sizes of an open program share, and that ``resizing`` resizes.

    ``of_runs`` and ``of_calls`` are the sizes that its runs and its calls have now; None before the first resize, and
    after one that failed.
    """

    def __init__(self, session: Session, resizing: Resizing) -> None:
        self.session, self.resizing = session, resizing
        self.of_runs: SizeFit | None = None
        self.of_calls: SizeFit | None = None


class SharedInstance:
    """The instance of ``shared`` at the sizes of ``fit``. ``at`` returns the program for given values of its open
    dimensions; ``values`` are those of this instance.
    """

    __slots__ = ("_at", "_fit", "_shared", "_values")

    def __init__(
        self, shared: SharedSession, fit: SizeFit, at: Callable[[Sequence[int]], Executable], values: tuple[int, ...]
    ) -> None:
        self._shared, self._fit, self._at, self._values = shared, fit, at, values

    @property
    def session(self) -> Session:
        return self._shared.session

    @property
    def planned_memory(self) -> tuple[PlannedMemory, ...]:
        memory = bound_program_of(self.session).memory
        return planned_memory(self._at(self._values), memory, self._fit.threads, [])

    def shape_of(self, spec: TensorSpec) -> tuple[int, ...]:
        return self._spec_of(spec).shape

    def take_states(self, inputs: Sequence[TensorSpec], memory: Sequence[Halves] | None = None) -> None:
        take_states(self.session, [self._spec_of(spec) for spec in inputs], memory)

    def _spec_of(self, spec: TensorSpec) -> TensorSpec:
        for each in self._fit.specs:  # inputs come first
            if each.name == spec.name:
                return each
        raise KeyError(spec.name)

    def keeps_bindings(self) -> bool:
        return _has_same_io(self._shared.of_runs, self._fit)

    def for_runs(self) -> Session:
        shared = self._shared
        before = shared.of_runs
        if before is not self._fit:
            shared.of_runs = None
            resize_runs(shared.session, shared.resizing, self._fit, keeps=_has_same_io(before, self._fit))
            shared.of_runs = self._fit
        return shared.session

    def for_calls(self) -> Session:
        shared = self._shared
        before = shared.of_calls
        if before is not self._fit:
            shared.of_calls = None
            resize_calls(shared.session, shared.resizing, self._fit, keeps=_has_same_io(before, self._fit))
            shared.of_calls = self._fit
        return shared.session


def _has_same_io(before: SizeFit | None, fit: SizeFit) -> bool:
    return before is not None and fit.has_io_of(before)
