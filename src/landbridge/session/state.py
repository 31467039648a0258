"""State: what a program carries from run to run, in memory that runs continue, with its length and capacity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from landbridge.dtypes import stored_dtype
from landbridge.errors import InputError, ShapeError, StateCapacityError
from landbridge.executable.bound_sizes import BoundSizes
from landbridge.executable.parts import TensorSpec
from landbridge.process.process_bound import ProcessBound
from landbridge.session.host_values import host_values
from landbridge.session.state_file import StatePart, read_state, write_state
from landbridge.session.state_group import Halves, StateContents, StateGroup
from landbridge.session.state_memory import shares_bytes
from landbridge.session.state_sizes import checked_length, fitted, shape_with, sizes_of, whole_number
from landbridge.tensor import Tensor, asarray
from landbridge.tensor.copy import copy_tensor
from landbridge.vm.entry import takes_lock
from landbridge.vm.sliding_windows import filled_part


class State(ProcessBound):
    """The values that outputs of each run give to inputs of the next: keys and values of a language model, for one.

    ``session.bind_state(...)`` makes one, and runs of the Session continue it from then on. A Session may have several:
    ``state.bind()`` selects the one that the next runs continue. States of a Session never share memory.

    A state that grows has a ``length``, the number of steps that it holds, and a ``capacity``. A run appends its steps
    behind the length. One that does not fit raises StateCapacityError before anything is written, and a run that fails
    or is interrupted leaves the length, and the steps up to it, as they were. Other states have neither.

    Methods take the Session's lock, and raise SessionBusyError while another thread uses it.
    """

    _instead: ClassVar[str] = "use state.save(path), and load(path) of a state of another Session"

    def __init__(self, group: StateGroup, contents: StateContents) -> None:
        self._group, self._entry, self._contents = group, group.entry, contents
        group.hold(self, contents)

    # What it is -------------------------------------------------------------------------------------------------

    @property
    def length(self) -> int | None:
        """Returns how many steps are filled; None for a state that does not grow."""
        return None if self._contents.capacity is None else self._contents.length

    @property
    def capacity(self) -> int | None:
        """Returns how many steps there is memory for; None for a state that does not grow."""
        return self._contents.capacity

    @property
    def pairs(self) -> dict[str, str]:
        """Returns the input that takes the value of each output, by the name of the output."""
        return {output.name: input.name for output, input in self._group.facts.pairs}

    @property
    def is_bound(self) -> bool:
        """Returns whether the runs of the Session continue this state."""
        return self._group.current is self._contents

    @property
    @takes_lock
    def tensors(self) -> dict[str, Tensor]:
        """Returns the current values as Tensors over their memory, by the name of the input, without a copy.

        A state that does not grow has two buffers that swap, or slides through memory: ask again after a run. Raises
        InputError where there is no memory yet, as it has sizes that the first run decides.
        """
        values = {}
        for (_, spec), halves in zip(self._group.facts.pairs, self._needed(), strict=True):
            slides = spec.name in self._group.facts.slides
            values[spec.name] = self._filled(spec, halves[1], 0) if slides else halves[1]
        return values

    def __repr__(self) -> str:
        names = ", ".join(self.pairs.values())
        shown = names if len(names) < 60 else f"{names[:57]}..."
        steps = (
            "" if self._contents.capacity is None else f", {self._contents.length} of {self._contents.capacity} steps"
        )
        return f"State({shown}{steps}{', bound' * self.is_bound})"

    # What is done with it ---------------------------------------------------------------------------------------

    @takes_lock
    def bind(self) -> None:
        """Let the next runs of the Session continue this state; no byte is copied."""
        self._group.continue_with(self._contents)

    @takes_lock
    def rewind(self, length: int) -> None:
        """Go back to the first ``length`` steps; those behind are overwritten by the next runs.

        It moves no byte: a draft that was refused, or an edited prompt. Raises InputError unless ``length`` is from 0
        to the length now.
        """
        most = None if self._contents.capacity is None else self._contents.length
        self._contents.length = checked_length(length, most, "the state has {} steps", InputError)
        self._group.write_counts(self._contents)

    @takes_lock
    def reset(self) -> None:
        """Begin again, with no steps; those of the inputs that do not grow become zeros."""
        self._contents.length = 0
        self._fill_zeros()

    @takes_lock
    def fork(self) -> State:
        """Returns a further state that begins with the steps of this one, in memory of its own.

        The filled steps are copied, as the ledger shows with the cause ``fork``; both continue independently. The
        binding stays as it is.
        """
        forked = StateContents(self._contents.capacity, self._contents.sizes)
        memory = self._memory()
        if memory is not None:
            forked.parked = self._copied(memory, [halves[1].shape for halves in memory], "fork")
        forked.length = self._contents.length
        return State(self._group, forked)

    @takes_lock
    def resize(self, capacity: int) -> None:
        """Move the state to memory of the Session for ``capacity`` steps; the filled ones are copied once, cause
        ``resize``.

        Raises StateCapacityError where they do not fit, InputError where the program has a fixed capacity.
        """
        facts = self._group.facts
        sizes = sizes_of(facts, capacity)
        capacity = whole_number("capacity", capacity)
        if capacity < self._contents.length:
            raise StateCapacityError(
                f"the state has {self._contents.length} steps, capacity {capacity} holds fewer; rewind(length) drops "
                "steps"
            )
        memory = self._memory()
        resized: tuple[Halves, ...] | None = None
        if memory is not None:
            shapes = [
                shape_with(halves[1].shape, facts.axes.get(spec.name), capacity)
                for (_, spec), halves in zip(facts.pairs, memory, strict=True)
            ]
            resized = self._copied(memory, shapes, "resize")
        self._contents.capacity, self._contents.sizes = capacity, sizes
        self._group.replace_memory(self._contents, resized)

    @takes_lock
    def assign(self, values: Mapping[str, Any], length: int | None = None) -> None:
        """Copy ``values``, by the name of the input, into the state, which then has ``length`` steps.

        Each is an array or Tensor of the filled steps alone, or of all of the capacity. It is how a cache that another
        program computed is continued. States that count the steps get ``length``, and are left out. The ledger's cause
        is ``assign``. Raises InputError where one is missing or does
        not fit, and changes nothing then.
        """
        self._assign(values, length, "assign")

    @takes_lock
    def save(self, path: str | Path) -> None:
        """Write the filled steps to the file ``path``, whole or not at all; raises OutputFileError."""
        facts, memory = self._group.facts, self._needed()
        arrays = [
            host_values(self._filled(spec, halves[1], self._contents.length))
            for (_, spec), halves in zip(facts.pairs, memory, strict=True)
        ]
        parts = [
            StatePart(spec.name, spec.dtype, array.shape) for (_, spec), array in zip(facts.pairs, arrays, strict=True)
        ]
        write_state(path, self._group.model, self.length, parts, arrays)

    @takes_lock
    def load(self, path: str | Path) -> None:
        """Continue with the steps of the file ``path``, which are copied into this state, cause ``load``.

        Raises InputError for a state of another model, dtype or shape, and StateCapacityError for more steps than the
        capacity; nothing changes then.
        """
        length, parts, arrays = read_state(path, self._group.model)
        expected = {spec.name: spec.dtype for _, spec in self._group.facts.pairs}
        found = {part.name: part.dtype for part in parts}
        if found != expected:
            raise InputError(f"{path} holds the states {found}; those of this program are {expected}")
        if (length is None) != (self._contents.capacity is None):
            found_steps, wanted = ("no", "a") if length is None else ("a", "no")
            raise InputError(
                f"{path} holds a state with {found_steps} length; that of this program has {wanted} length"
            )
        counts = self._group.facts.counts
        values = {part.name: array for part, array in zip(parts, arrays, strict=True) if part.name not in counts}
        self._assign(values, length, "load")

    # Memory -----------------------------------------------------------------------------------------------------

    def _memory(self) -> tuple[Halves, ...] | None:
        return self._group.memory_of(self._contents)

    def _needed(self) -> tuple[Halves, ...]:
        memory = self._memory()
        if memory is None:
            raise InputError("the state has no memory yet: its sizes are those of the first run; run, or assign values")
        return memory

    def _copied(self, memory: Sequence[Halves], shapes: Sequence[tuple[int, ...]], cause: str) -> tuple[Halves, ...]:
        """Returns new memory of ``shapes`` with the filled steps of ``memory``."""
        facts = self._group.facts
        created = []
        for number, ((_, spec), halves, shape) in enumerate(zip(facts.pairs, memory, shapes, strict=True)):
            new = self._group.memory.allocate(number, shape)
            filled = partial(self._filled, spec, steps=self._contents.length)
            copy_tensor(filled(new[1]), filled(halves[1]), cause=cause)
            created.append(new)
        return tuple(created)

    def _fill_zeros(self) -> None:
        """Zero what does not grow; all, where a run may read what is behind the steps."""
        facts = self._group.facts
        appended = {} if any(each.positions for each in self._growths()) else facts.axes
        for (_, spec), halves in zip(facts.pairs, self._memory() or (), strict=False):
            if spec.name in appended:
                continue
            target = halves[1]
            zeros = np.zeros(target.shape, stored_dtype(target.dtype))
            copy_tensor(target, Tensor.from_numpy_view(zeros), cause="reset")

    def _assign(self, values: Mapping[str, Any], length: int | None, cause: str) -> None:
        facts = self._group.facts
        names = [spec.name for _, spec in facts.pairs if spec.name not in facts.counts]
        if not isinstance(values, Mapping) or set(values) != set(names):
            found = list(values) if isinstance(values, Mapping) else type(values).__name__
            raise InputError(f"values are given as {found}; legal: a dict by the names of the inputs, {names}")
        if self._contents.capacity is not None:
            if length is None:
                raise InputError("length= says how many steps the values are; this state grows")
            length = checked_length(length, self._contents.capacity)
        elif length is not None:
            raise InputError(f"length={length}: this state does not grow; leave it out")
        steps = length or 0
        counts = {spec.name: np.full(spec.shape, steps, stored_dtype(spec.dtype)) for spec in self._counts()}
        memory, sources, bound = self._memory(), [], BoundSizes()
        for number, (_, spec) in enumerate(facts.pairs):
            tensor = asarray(counts[spec.name] if spec.name in counts else values[spec.name])
            shape = memory[number][1].shape if memory is not None else fitted(spec.shape, tensor.shape)
            shape = shape_with(shape, facts.axes.get(spec.name), self._contents.capacity)
            partial_shape = shape_with(shape, *facts.filled(spec.name, steps))
            if tensor.dtype != spec.dtype or tensor.shape not in (shape, partial_shape):
                raise InputError(
                    f"state {spec.name!r} is {spec.dtype}{list(partial_shape)} with {steps} steps, the value is "
                    f"{tensor.dtype}{list(tensor.shape)}"
                )
            if memory is None:
                try:
                    bound.add(spec, shape)
                except ShapeError as error:
                    raise InputError(f"the value for state {spec.name!r}: {error}") from None
            elif any(shares_bytes(tensor, half) for halves in memory for half in halves):
                raise InputError(
                    f"the value for state {spec.name!r} lies in memory of the state itself; give a copy: "
                    "np.array(value)"
                )
            sources.append((self._filled(spec, tensor, steps), shape))
        target = memory or tuple(self._group.memory.allocate(n, shape) for n, (_, shape) in enumerate(sources))
        for (_, spec), halves, (tensor, _) in zip(facts.pairs, target, sources, strict=True):
            copy_tensor(self._filled(spec, halves[1], steps), tensor, cause=cause)
        if memory is None:
            self._group.replace_memory(self._contents, target)
        self._contents.length = steps

    def _counts(self) -> list[TensorSpec]:
        return [spec for _, spec in self._group.facts.pairs if spec.name in self._group.facts.counts]

    def _filled(self, spec: TensorSpec, tensor: Tensor, steps: int) -> Tensor:
        """Returns what is filled of ``tensor``, memory of state ``spec``, where states that grow have ``steps``."""
        axis, elements = self._group.facts.filled(spec.name, steps)
        return tensor if axis is None or tensor.shape[axis] == elements else filled_part(tensor, axis, elements)

    def _growths(self) -> list[Any]:
        return [growth for each in self._group.facts.growths.values() for growth in each.values()]
