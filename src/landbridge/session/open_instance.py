"""Instances: an open program at one choice of its sizes, ready for runs and calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from landbridge.executable.executable import Executable
from landbridge.executable.parts import TensorSpec
from landbridge.session.fixed_executor import FixedExecutor
from landbridge.vm.resizing import Resizing
from landbridge.vm.size_fit import FitsAhead, SizeFit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from landbridge.session.state_group import Halves
    from landbridge.vm.planned_memory import PlannedMemory


class Instance(Protocol):
    """A program at one choice of sizes; ``executor``, which runs it, may serve other sizes too."""

    @property
    def executor(self) -> FixedExecutor:
        """Returns the executor that runs the program."""

    @property
    def planned_memory(self) -> tuple[PlannedMemory, ...]:
        """Returns the memory that one execution at these sizes needs, an entry for each scope."""

    def shape_of(self, spec: TensorSpec) -> tuple[int, ...]:
        """Returns the shape of ``spec``, an input of the open program, at these sizes."""

    def take_states(self, inputs: Sequence[TensorSpec], memory: Sequence[Halves] | None = None) -> None:
        """Resize the executor's recurrent states to these sizes; ``inputs`` are the inputs of the states, in the order
        in which these were bound, as the open program declares them.

        States whose shape changes become zeros. With ``memory``, one (written, read) pair of Tensors of the new shape
        for each state, they are bound to that and keep its content.
        """

    def slide_states(self) -> None:
        """Slide windows among the executor's recurrent states by what an execution at these sizes writes."""

    def for_runs(self) -> FixedExecutor:
        """Returns the executor after resizing its runs to these sizes. Nothing but states is bound any more to inputs
        and outputs that had other sizes.
        """

    def for_calls(self) -> FixedExecutor:
        """Returns the executor, with its calls resized to these sizes."""


class OwnedInstance:
    """An instance with its own executor, for programs that cannot be rebound to other sizes; ``values`` are those of
    the open dimensions, by name.
    """

    def __init__(self, executor: FixedExecutor, values: Mapping[str, int]) -> None:
        self.executor, self._values = executor, values

    def shape_of(self, spec: TensorSpec) -> tuple[int, ...]:
        return self._spec_of(spec).shape

    def take_states(self, inputs: Sequence[TensorSpec], memory: Sequence[Halves] | None = None) -> None:
        if memory is not None:  # its states never had other sizes
            self.executor.program.states.take([self._spec_of(spec) for spec in inputs], memory)

    def _spec_of(self, spec: TensorSpec) -> TensorSpec:
        return next(each for each in self.executor.executable.main.inputs if each.name == spec.name)

    @property
    def planned_memory(self) -> tuple[PlannedMemory, ...]:
        return self.executor.planned_memory

    def slide_states(self) -> None:
        self.executor.program.states.slide_at(self._values)

    def for_runs(self) -> FixedExecutor:
        return self.executor

    for_calls = for_runs


class SharedExecutor:
    """An executor that all sizes of an open program share, and that ``resizing`` resizes.

    ``of_runs`` and ``of_calls`` are the sizes that its runs and its calls have now; None before the first resize, and
    after one that failed.
    """

    def __init__(self, executor: FixedExecutor, resizing: Resizing) -> None:
        self.executor, self.resizing = executor, resizing
        self.of_runs: SizeFit | None = None
        self.of_calls: SizeFit | None = None


class SharedInstance:
    """The instance of ``shared`` at the sizes of ``fit``. ``at`` returns the program for given values of its open
    dimensions; ``values`` are those of this instance.
    """

    __slots__ = ("_at", "_fit", "_shared", "_values")

    def __init__(
        self, shared: SharedExecutor, fit: SizeFit, at: Callable[[Sequence[int]], Executable], values: tuple[int, ...]
    ) -> None:
        self._shared, self._fit, self._at, self._values = shared, fit, at, values

    @property
    def executor(self) -> FixedExecutor:
        return self._shared.executor

    @property
    def planned_memory(self) -> tuple[PlannedMemory, ...]:
        from landbridge.vm.planned_memory import planned_memory

        memory = self.executor.program.memory
        return planned_memory(self._at(self._values), memory, self._fit.threads, [])

    def shape_of(self, spec: TensorSpec) -> tuple[int, ...]:
        return self._spec_of(spec).shape

    def take_states(self, inputs: Sequence[TensorSpec], memory: Sequence[Halves] | None = None) -> None:
        self.executor.program.states.take([self._spec_of(spec) for spec in inputs], memory)

    def _spec_of(self, spec: TensorSpec) -> TensorSpec:
        for each in self._fit.specs:  # inputs come first
            if each.name == spec.name:
                return each
        raise KeyError(spec.name)

    def slide_states(self) -> None:
        self.executor.program.states.slide_at(self._shared.resizing.sizes_of(self._values))

    def for_runs(self) -> FixedExecutor:
        shared = self._shared
        before = shared.of_runs
        if before is not self._fit:
            shared.of_runs = None
            shared.executor.resize_runs(shared.resizing, self._fit, before)
            shared.of_runs = self._fit
        return shared.executor

    def for_calls(self) -> FixedExecutor:
        shared = self._shared
        before = shared.of_calls
        if before is not self._fit:
            shared.of_calls = None
            shared.executor.resize_calls(shared.resizing, self._fit, before)
            shared.of_calls = self._fit
        return shared.executor


class InstancesAhead:
    """Instances of ``shared`` at the sizes of ``fits``, one after the other, each created at its first use.

    ``at`` as for SharedInstance; ``values`` has those of each instance, a row each, and perhaps further rows.
    """

    def __init__(
        self,
        shared: SharedExecutor,
        fits: FitsAhead,
        at: Callable[[Sequence[int]], Executable],
        values: NDArray[np.int64],
    ) -> None:
        self._shared, self._fits, self._at, self._values = shared, fits, at, values
        self._known: dict[int, SharedInstance] = {}

    def __len__(self) -> int:
        return len(self._fits)

    def at(self, number: int) -> SharedInstance:
        """Returns instance ``number``."""
        found = self._known.get(number)
        if found is None:
            values = tuple(self._values[number].tolist())
            found = self._known[number] = SharedInstance(self._shared, self._fits.at(number), self._at, values)
        return found
