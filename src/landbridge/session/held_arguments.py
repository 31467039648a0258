"""HeldArguments: what is bound to inputs and outputs of an open program, for the sizes of now and for later ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from landbridge.errors import InputError, OutOfMemoryError
from landbridge.executable.bound_sizes import BoundSizes, first_that_fits
from landbridge.executable.parts import TensorSpec
from landbridge.session.fixed_executor import FixedExecutor
from landbridge.session.open_arguments import array_of, check_borrowed, copy_for, memory_for
from landbridge.session.open_instance import Instance
from landbridge.session.open_instances import OpenInstances
from landbridge.session.progression import Rows
from landbridge.vm.slot_names import find_slot, specs_by_name_and_index

if TYPE_CHECKING:
    from landbridge.session.state_group import StateGroup

#: The number of shapes retained that an input may have.
_RETAINED = 64


class HeldArguments:
    """What is bound for runs of ``instances``, of a program with ``inputs`` and ``outputs``. It is held here, and bound
    to an instance once a run needs that.
    """

    def __init__(self, instances: OpenInstances, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> None:
        self._instances, self._states = instances, instances.states
        self._input_specs = inputs
        self._inputs, self._outputs = specs_by_name_and_index(inputs), specs_by_name_and_index(outputs)
        #: What is bound to inputs and outputs, by name.
        self._held: dict[str, Any] = {}
        self._held_outputs: dict[str, Any] = {}
        #: Inputs whose arrays belong to this object.
        self._by_value: set[str] = set()
        #: The arrays of the inputs that say how many steps the state has.
        self._length_arrays: dict[str, np.ndarray[Any, Any]] = {}
        #: Shapes that were bound to an input before, by index.
        self._accepted: set[tuple[int, tuple[int, ...]]] = set()
        #: The instance that runs were bound for last.
        self.now: Instance | None = None
        #: Whether all that is held is bound to runs of ``now``.
        self._settled = False
        #: The inputs and outputs whose values are new since they were bound to its executor; None: all.
        self._stale: set[str] | None = None
        #: What is held for the inputs that callers give, and the shapes; None where something else is held since.
        self._arguments: tuple[list[Any], Rows] | None = None

    def input(self, name: str | int) -> TensorSpec:
        """Returns the input called ``name``, or of that index; raises InputError where there is none."""
        return find_slot("input", name, self._inputs)

    def output(self, name: str | int) -> TensorSpec:
        """Returns the output called ``name``, or of that index; raises InputError where there is none."""
        return find_slot("output", name, self._outputs)

    def by_name(self) -> dict[str, Any]:
        """Returns what is bound, inputs and outputs."""
        return {**self._held, **self._held_outputs}

    def set_input(self, name: str | int, value: Any) -> None:
        """Hold a copy of ``value`` for input ``name``."""
        spec = self.input(name)
        if self._instances.group is not None:
            self._instances.group.check_settable(spec.name)
        copied = copy_for(spec, value)
        if self._states.has(spec):
            self._check(spec, copied.shape)
            self._states.give(spec.name, copied)
        else:
            self._hold(spec, copied)
            self._by_value.add(spec.name)

    def set_input_zero_copy(self, name: str | int, value: Any) -> None:
        """Hold the memory of ``value`` for input ``name``."""
        spec = self.input(name)
        if self._states.has(spec):
            raise InputError(f"input {spec.name!r} is a recurrent state, whose memory swaps at each run; use set_input")
        if self._instances.group is not None:
            self._instances.group.check_settable(spec.name)
        value = memory_for(spec, value)
        check_borrowed(spec, value)
        self._hold(spec, value)
        self._by_value.discard(spec.name)

    def set_output_zero_copy(self, index: int | str, out: Any) -> None:
        """Hold the memory of ``out`` for output ``index``."""
        spec = self.output(index)
        if self._states.has(spec):
            raise InputError(f"{spec.name!r} is a recurrent state, whose memory swaps at each run; use get_output")
        self._held_outputs[spec.name] = memory_for(spec, out, is_input=False)
        self._is_set(spec.name)

    def _check(self, spec: TensorSpec, shape: Sequence[int]) -> None:
        """Raises ShapeError where no program accepts an input ``spec`` of ``shape``."""
        index = self._input_specs.index(spec)
        key = index, tuple(shape)
        if key in self._accepted:
            return
        programs = self._instances.programs_for([shape])
        first_that_fits(list(programs), lambda name: BoundSizes().add(programs[name].inputs[index], shape))
        if len(self._accepted) >= _RETAINED * len(self._input_specs):
            self._accepted.clear()
        self._accepted.add(key)

    def _hold(self, spec: TensorSpec, value: Any) -> None:
        self._check(spec, np.shape(value))
        self._held[spec.name] = value
        self._is_set(spec.name)

    def bind_pair(self, source: TensorSpec, target: TensorSpec) -> None:
        """Make ``source`` of each run the ``target`` of the next, which begins with what is bound to it."""
        self._instances.bind_pair(source, target)
        self._settled, self._stale, self._arguments = False, None, None
        self._held_outputs.pop(source.name, None)
        if target.name in self._held:
            self._states.give(target.name, np.array(array_of(self._held.pop(target.name)), order="C"))

    def continue_from(self, before: HeldArguments) -> None:
        """Hold what ``before`` does."""
        self._held, self._held_outputs = dict(before._held), dict(before._held_outputs)
        self._by_value, self._length_arrays = set(before._by_value), dict(before._length_arrays)

    def drop(self, input: TensorSpec) -> None:
        """Bind nothing to ``input`` any more."""
        self._held.pop(input.name, None)

    def last(self) -> Instance:
        """Returns the instance that runs were bound for last; raises InputError where there is none yet."""
        if self.now is None:
            raise InputError(
                "no sizes are known yet: bind every input and call run(); session.outputs has shapes and dtypes before "
                "that"
            )
        return self.now

    def settle(self) -> FixedExecutor:
        """Returns the executor of the instance for what is bound, with that bound to it."""
        if self._settled and self.now is not None and self._instances.by_shapes_alone:
            return self.now.executor
        held = self._held
        if self._instances.group is not None:
            self._give_lengths(self._instances.group)
        if self._arguments is None:
            try:
                given = [held[spec.name] for spec in self._instances.given]
            except KeyError:
                missing = ", ".join(repr(spec.name) for spec in self._instances.given if spec.name not in held)
                raise InputError(f"nothing is bound to input {missing}; bind it before run()") from None
            self._arguments = given, tuple(map(np.shape, given))
        found = self._instances.of(*self._arguments)
        now = self.now
        if self._settled and found is now:
            return found.executor
        self._settled = False  # until that is done
        if now is None or now.executor is not found.executor:
            self._stale = None
            if now is not None:
                now.executor.let_results_go()
        executor = found.for_runs()
        try:
            self._bind_held(executor)
        except OutOfMemoryError:
            self.now = now = self._stale = None  # inputs in rows are memory of their own, too
            self._instances.free()
            self._bind_held(executor)
        self.now, self._settled = found, True
        return executor

    def _bind_held(self, executor: FixedExecutor) -> None:
        """Bind to runs of ``executor`` what is held, unless that is bound already."""
        stale = self._stale
        if stale is not None and not stale and executor.is_complete:
            return
        for name, value in self._held.items():
            if stale is None or name in stale or executor.input_slots[name].owner is None:
                if name in self._by_value:
                    _set_owned_input(executor, name, value)
                else:
                    executor.set_input_zero_copy(name, value)
        for name, out in self._held_outputs.items():
            if stale is None or name in stale or executor.output_slots[name].owner is None:
                executor.set_output_zero_copy(name, out)
        self._stale = set()

    def _is_set(self, name: str) -> None:
        """Note that the value held for input or output ``name`` is new."""
        self._settled, self._arguments = False, None
        if self._stale is not None:
            self._stale.add(name)

    def _give_lengths(self, group: StateGroup) -> None:
        """Give runs the inputs that say how many steps the state has, in arrays of this executor: what reads them in
        place reads the new number.
        """
        owned = self._length_arrays
        is_new = not owned
        if is_new:
            owned.update(group.lengths())
            self._held.update(owned)
            self._by_value.update(owned)
        for name, array in owned.items():
            array.fill(group.length)
            if is_new or self.now is None or not _is_read_in_place(self.now.executor, name):
                self._is_set(name)


def _is_read_in_place(executor: FixedExecutor, name: str) -> bool:
    """Returns whether runs of ``executor`` read input ``name`` where the host has it."""
    return executor.input_slots[name].binding is None


def _set_owned_input(executor: FixedExecutor, name: str, array: np.ndarray[Any, Any]) -> None:
    """Bind input ``name`` of ``executor`` to ``array``, which nobody writes: in place where that is host memory."""
    if _is_read_in_place(executor, name):
        executor.set_input_zero_copy(name, array)
    else:
        executor.set_input(name, array)
