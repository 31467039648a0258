"""OpenStates: recurrent states of a program with open dimensions, which are carried from size to size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from landbridge.errors import InputError, ShapeError, ZeroCopyError
from landbridge.executable.bound_sizes import BoundSizes
from landbridge.executable.parts import TensorSpec
from landbridge.memory.borrowed import host_device
from landbridge.session.find_states import check_halves
from landbridge.session.fixed_executor import FixedExecutor
from landbridge.session.open_instance import Instance
from landbridge.sizes.size import Size, dimensions_of
from landbridge.tensor import empty

if TYPE_CHECKING:
    from landbridge.session.state_group import Halves


class OpenStates:
    """The recurrent states of an open program, as (output, input) pairs, and where their values are: in the executor
    that ran last, or set since then.

    An executor has two buffers for a state, which swap, or one that kernels update. Where instances share an executor,
    nothing is copied when sizes change. An instance with its own executor adopts the memory where it uses it in
    place, else it copies the values.
    """

    def __init__(self) -> None:
        self.pairs: tuple[tuple[TensorSpec, TensorSpec], ...] = ()
        #: The executor whose memory has the values, and their shapes there.
        self.shapes: tuple[tuple[int, ...], ...] = ()
        self.holder: FixedExecutor | None = None
        #: The instance that the next run continues, if it is one of these sizes.
        self._instance: Instance | None = None
        self._given: dict[str, Any] = {}
        #: Memory that the next run takes over, in place of the holder's; None: memory of its own.
        self._pending: tuple[Halves, ...] | None = None
        #: Whether that is memory of the application, which is not copied.
        self._is_given = False
        #: Whether the next run begins with new memory.
        self._is_new = False
        #: Dimensions that the state declares, by name.
        self._sizes: dict[str, int] = {}
        #: The executor that allocates further memory until one runs again.
        self._allocating: FixedExecutor | None = None
        #: How many of the pairs each executor has.
        self._known: WeakKeyDictionary[FixedExecutor, int] = WeakKeyDictionary()

    def bind(self, output: TensorSpec, input: TensorSpec) -> None:
        """Make ``output`` of each run the ``input`` of the next. Raises InputError where one of them is in a state
        already, shapes or dtypes differ, or elements of the input are dimensions.
        """
        for spec in (output, input):
            if self.has(spec):
                raise InputError(f"{spec.name!r} is a recurrent state already")
        check_halves(output, input)
        self.pairs, self._instance = (*self.pairs, (output, input)), None

    def continue_from(self, before: OpenStates) -> None:
        """Let the next run continue with what ``before`` has, whose pairs this has too."""
        memory = before.take()
        if memory is not None or before._is_new:
            self.put(memory, before._sizes, is_given=before._is_given)
        self._given = dict(before._given)

    def has(self, spec: TensorSpec) -> bool:
        """Returns whether ``spec`` is the input or the output of a state."""
        return any(spec is half for pair in self.pairs for half in pair)

    def give(self, name: str, value: Any) -> None:
        """Let the next run start with ``value`` for input ``name`` of a state. The array is not copied before that run,
        and nobody may write it until then.
        """
        self._given[name] = value

    def take(self) -> tuple[Halves, ...] | None:
        """Returns the memory of each pair; None where the first run decides its sizes."""
        if self._pending is not None or self.holder is None:
            return self._pending
        return self.holder.program.states.memory()

    def put(self, memory: Sequence[Halves] | None, sizes: Mapping[str, int], *, is_given: bool = False) -> None:
        """Let the next run continue with ``memory``, a pair of Tensors for each state; None: with new memory, zeroed.

        ``sizes`` are the dimensions that the state determines (its capacity), by name. Values that were set are
        dropped. With ``is_given``, a run that cannot use the memory in place raises ZeroCopyError.
        """
        self._is_given = is_given
        self._pending, self._is_new = None if memory is None else tuple(memory), memory is None
        self._sizes, self._given = dict(sizes), {}
        if self.holder is not None:
            self._allocating, self.holder = self.holder, None

    def allocate(self, number: int, shape: Sequence[int]) -> Halves:
        """Returns new memory of ``shape``, zeroed, for state ``number``: host memory, once for both halves, where no
        executor has run yet.
        """
        executor = self.holder or self._allocating
        if executor is not None:
            return executor.program.states.allocate(number, shape)
        tensor = empty(tuple(shape), dtype=self.pairs[number][1].dtype, device=host_device())
        np.asarray(tensor)[...] = 0
        return tensor, tensor

    def add_shapes(
        self,
        specs: Sequence[TensorSpec],
        shapes: Mapping[str, Sequence[int]],
        elements: Mapping[str, Sequence[int]],
    ) -> dict[str, Sequence[int]]:
        """Returns ``shapes``, the shapes of inputs by name, with those of states added: the shape of a value that was
        set, else the one that the other inputs imply, else the one that the state has now.

        ``specs`` are all inputs of the program, ``elements`` the elements of those that give dimensions, by name.
        Raises ShapeError where shapes contradict each other, InputError where the size of a state is not known or does
        not fit.
        """
        found = dict(shapes) | {name: value.shape for name, value in self._given.items()}
        bound = BoundSizes()
        for name, size in self._sizes.items():
            bound.declare(name, size, "the capacity of the state")
        for spec in specs:
            if spec.name in found:
                bound.add(spec, found[spec.name])
            if spec.elements:
                bound.add_elements(spec, elements[spec.name])
        left = [spec for _, spec in self.pairs if spec.name not in found]
        for spec in left:
            unknown = [name for name in dimensions_of(spec.shape) if name not in bound.values]
            if unknown:
                found[spec.name] = now = self._shape_now(spec, unknown[0])
                try:
                    bound.add(spec, now)
                except ShapeError as error:
                    raise InputError(f"state {spec.name!r} is {tuple(now)} now: {error}; {_way_out(spec)}") from None
        for spec in left:
            found.setdefault(spec.name, [e.at(bound.values) if isinstance(e, Size) else e for e in spec.shape])
        return found

    def _shape_now(self, spec: TensorSpec, dimension: str) -> tuple[int, ...]:
        if self._pending is not None:
            return self._pending[[each.name for _, each in self.pairs].index(spec.name)][1].shape
        if self.holder is None:
            raise InputError(
                f"dimension {dimension!r} is that of state {spec.name!r}, which has none; {_way_out(spec)}"
            )
        return self.holder.get_input(spec.name).shape

    def rebind_to(self, instance: Instance) -> None:
        """Prepare the next run to be one of ``instance``: copy the values that are elsewhere to its executor.

        The ledger's cause is ``set_input``. Raises InputError, before anything is copied, that names a state whose
        shape differs there.
        """
        executor, holder = instance.executor, self.holder
        if instance is self._instance and executor is holder and not self._given:
            return
        inputs = [spec for _, spec in self.pairs]
        then = tuple(instance.shape_of(spec) for spec in inputs)
        pending = self._pending
        instance.slide_states()
        if executor is holder and then == self.shapes and not self._given:
            self._instance = instance
            return
        begins = self._is_new and self._known.get(executor, 0) == 0
        for i in range(self._known.get(executor, 0), len(self.pairs)):
            output, input = self.pairs[i]
            begins = begins and _has_no_memory(executor, output.name, input.name)
            executor.bind_pair(output.name, input.name)
            self._known[executor] = i + 1
        values: dict[str, Any] = {}
        if holder is not None:
            for spec, shape in zip(inputs, then, strict=True):
                if spec.name in self._given:
                    continue
                now = values[spec.name] = holder.get_input(spec.name)
                if now.shape != shape:
                    raise InputError(
                        f"state {spec.name!r} is {now.shape}, a run of these sizes takes {shape}; {_way_out(spec)}"
                    )
        if self._is_new and not begins:  # what bind_state allocates is new itself
            pending = tuple(executor.program.states.allocate(number, shape) for number, shape in enumerate(then))
        if pending is not None:
            self._take_pending(instance, inputs, pending, then)
        else:
            instance.take_states(inputs)
        if holder is not None and executor is not holder:
            for number, spec in enumerate(inputs):
                if spec.name in values and not executor.program.states.adopt(holder.program.states, number):
                    executor.set_input(spec.name, values[spec.name])
        for name, value in self._given.items():
            executor.set_input(name, value)
        self.holder, self.shapes, self._given, self._instance = executor, then, {}, instance
        self._allocating = None
        self._pending, self._is_new = None, False

    def _take_pending(
        self,
        instance: Instance,
        inputs: Sequence[TensorSpec],
        pending: Sequence[Halves],
        shapes: Sequence[tuple[int, ...]],
    ) -> None:
        """Bind ``pending`` for runs of ``instance``, or copy what it holds where that cannot be used in place."""
        for spec, halves, shape in zip(inputs, pending, shapes, strict=True):
            if halves[1].shape != shape:
                raise InputError(f"state {spec.name!r} is {halves[1].shape}, a run of these sizes takes {shape}")
        executor = instance.executor
        if all(executor.program.states.may_take(number, halves) for number, halves in enumerate(pending)):
            instance.take_states(inputs, pending)
            return
        if self._is_given:
            raise ZeroCopyError(
                "a run of these sizes does not use the memory of the state in place; make a State without memory=, "
                "and copy with state.assign(values, length)"
            )
        instance.take_states(
            inputs, [executor.program.states.allocate(number, shape) for number, shape in enumerate(shapes)]
        )
        for spec, halves in zip(inputs, pending, strict=True):
            executor.set_input(spec.name, halves[1])

    @property
    def carried_shapes(self) -> tuple[tuple[int, ...], ...] | None:
        """Returns the shapes of all states where the next run continues those of the last one; None where it
        does not.
        """
        return None if self._given or self.holder is None else self.shapes


def _way_out(spec: TensorSpec) -> str:
    return f"give it a value of its new shape with set_input({spec.name!r}, ...)"


def _has_no_memory(executor: FixedExecutor, output: str, input: str) -> bool:
    """Returns whether runs of ``executor`` have no memory yet for ``output`` and ``input``, neither bound nor owned."""
    halves = executor.output_slots[output], executor.input_slots[input]
    return all(half.owner is None and half.owned is None for half in halves)
