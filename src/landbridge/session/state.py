"""State: what a program carries from run to run, in memory that runs continue, with its length and capacity."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import index
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from landbridge.dtypes import numpy_dtype
from landbridge.errors import InputError, StateCapacityError
from landbridge.executable.executable import Executable
from landbridge.executable.parts import TensorSpec
from landbridge.process.process_bound import ProcessBound
from landbridge.session.find_states import find_states
from landbridge.session.state_file import StatePart, read_state, write_state
from landbridge.session.state_group import Halves, StateContents, StateGroup, StateMemory
from landbridge.tensor import Tensor
from landbridge.tensor.copy import copy_tensor
from landbridge.vm.entry import Entry, takes_lock


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

        A state that does not grow has two buffers that swap: ask again after a run. Raises InputError where there is no
        memory yet, as it has sizes that the first run decides.
        """
        return {spec.name: halves[1] for (_, spec), halves in zip(self._group.facts.pairs, self._needed(), strict=True)}

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
        self._contents.length = self._checked_length(length, self._contents.length, "the state has {} steps")

    @takes_lock
    def reset(self) -> None:
        """Begin again, with no steps; a state that does not grow becomes zeros."""
        self._contents.length = 0
        if self._contents.capacity is None or any(each.positions for each in self._growths()):
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
        """Move the state to memory for ``capacity`` steps; the filled ones are copied once, cause ``resize``.

        Raises StateCapacityError where they do not fit, InputError where the program has a fixed capacity.
        """
        facts = self._group.facts
        sizes = sizes_of(self._group, capacity)
        if capacity < self._contents.length:
            raise StateCapacityError(
                f"the state has {self._contents.length} steps, capacity {capacity} holds fewer; rewind(length) drops "
                "steps"
            )
        memory = self._memory()
        resized: tuple[Halves, ...] | None = None
        if memory is not None:
            shapes = [
                _with(halves[1].shape, facts.axes.get(spec.name), capacity)
                for (_, spec), halves in zip(facts.pairs, memory, strict=True)
            ]
            resized = self._copied(memory, shapes, "resize")
        self._contents.capacity, self._contents.sizes = capacity, sizes
        self._group.replace_memory(self._contents, resized)

    @takes_lock
    def assign(self, values: Mapping[str, Any], length: int | None = None) -> None:
        """Copy ``values``, by the name of the input, into the state, which then has ``length`` steps.

        Each is an array or Tensor of the filled steps alone, or of all of the capacity. It is how a cache that another
        program computed is continued. The ledger's cause is ``assign``. Raises InputError where one is missing or does
        not fit, and changes nothing then.
        """
        self._assign(values, length, "assign")

    @takes_lock
    def save(self, path: str | Path) -> None:
        """Write the filled steps to the file ``path``, whole or not at all; raises OutputFileError."""
        facts, memory = self._group.facts, self._needed()
        arrays = [
            _host_array(_part(halves[1], facts.axes.get(spec.name), self._contents.length))
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
        values = {part.name: array for part, array in zip(parts, arrays, strict=True)}
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
            axis = facts.axes.get(spec.name)
            copy_tensor(
                _part(new[1], axis, self._contents.length), _part(halves[1], axis, self._contents.length), cause=cause
            )
            created.append(new)
        return tuple(created)

    def _fill_zeros(self) -> None:
        for halves in self._memory() or ():
            target = halves[1]
            zeros = np.zeros(target.shape, numpy_dtype(target.dtype))
            copy_tensor(target, Tensor.from_numpy_view(zeros), cause="reset")

    def _assign(self, values: Mapping[str, Any], length: int | None, cause: str) -> None:
        facts = self._group.facts
        names = [spec.name for _, spec in facts.pairs]
        if not isinstance(values, Mapping) or set(values) != set(names):
            found = list(values) if isinstance(values, Mapping) else type(values).__name__
            raise InputError(f"values are given as {found}; legal: a dict by the names of the inputs, {names}")
        if self._contents.capacity is not None:
            if length is None:
                raise InputError("length= says how many steps the values are; this state grows")
            length = self._checked_length(length, self._contents.capacity, "the capacity is {}", StateCapacityError)
        elif length is not None:
            raise InputError(f"length={length}: this state does not grow; leave it out")
        steps = length or 0
        memory, sources = self._memory(), []
        for number, (_, spec) in enumerate(facts.pairs):
            source = values[spec.name]
            tensor = source if isinstance(source, Tensor) else Tensor.from_numpy_view(np.ascontiguousarray(source))
            axis = facts.axes.get(spec.name)
            shape = memory[number][1].shape if memory is not None else _fitted(spec.shape, tensor.shape)
            shape = _with(shape, axis, self._contents.capacity)
            partial_shape = _with(shape, axis, steps)
            if tensor.dtype != spec.dtype or tensor.shape not in (shape, partial_shape):
                raise InputError(
                    f"state {spec.name!r} is {spec.dtype}{list(partial_shape)} with {steps} steps, the value is "
                    f"{tensor.dtype}{list(tensor.shape)}"
                )
            sources.append((_part(tensor, axis, steps), shape))
        target = memory or tuple(self._group.memory.allocate(n, shape) for n, (_, shape) in enumerate(sources))
        for (_, spec), halves, (tensor, _) in zip(facts.pairs, target, sources, strict=True):
            copy_tensor(_part(halves[1], facts.axes.get(spec.name), steps), tensor, cause=cause)
        if memory is None:
            self._group.replace_memory(self._contents, target)
        self._contents.length = steps

    def _growths(self) -> list[Any]:
        return [growth for each in self._group.facts.growths.values() for growth in each.values()]

    def _checked_length(self, length: int, most: int, reason: str, error: type[InputError] = InputError) -> int:
        if self._contents.capacity is None:
            raise InputError("this state does not grow and has no length; reset() makes it zeros")
        number = _integer("length", length)
        if number < 0:
            raise InputError(f"length {number} is negative; legal: 0 to {most}")
        if number > most:
            raise error(f"length {number}: {reason.format(most)}; legal: 0 to {most}")
        return number


def sizes_of(group: StateGroup, capacity: int | None) -> dict[str, int]:
    """Returns the dimensions that are ``capacity``, by name; raises InputError where the program does not take it."""
    fixed, names = group.facts.capacities()
    if not fixed and not names:
        if capacity is not None:
            raise InputError(f"capacity={capacity}: this state does not grow; leave it out")
        return {}
    if capacity is None:
        if names:
            raise InputError(
                "capacity= is needed: it says for how many steps the state has memory, which the program leaves open"
            )
        return {}
    if _integer("capacity", capacity) < 1:
        raise InputError(f"capacity={capacity}; legal: from 1")
    wrong = {name: number for name, number in fixed.items() if number != capacity}
    if wrong:
        name, number = next(iter(wrong.items()))
        raise InputError(
            f"capacity={capacity}: the program was compiled with {number} steps of {name!r}; legal: {number}, or "
            "compile with that extent open, as a name in shapes="
        )
    return dict.fromkeys(names, capacity)


def first_state(
    executable: Executable,
    entry: Entry,
    memory: StateMemory,
    pairs: Mapping[str, str] | None,
    capacity: int | None,
    bound: Sequence[object],
    bind: Callable[[TensorSpec, TensorSpec], None],
) -> State:
    """Returns the first state of a Session, which runs continue, after ``bind`` was called for each of its pairs.

    ``bound``: pairs that are no part of a State, with which there can be none.
    """
    if bound:
        raise InputError(
            "bind_state(output, input) has bound pairs of this Session; make another Session, and name all pairs at "
            "once: bind_state({output: input, ...})"
        )
    group = StateGroup(find_states(executable, pairs), memory, entry, executable.metadata.get("model", ""))
    sizes = sizes_of(group, capacity)
    for output, input in group.facts.pairs:
        bind(output, input)
    return _new_state(group, capacity, sizes)


def group_of(state: State) -> StateGroup:
    """Returns what the states of the Session of ``state`` have in common."""
    return state._group


def further_state(group: StateGroup, pairs: Mapping[str, str] | None, capacity: int | None) -> State:
    """Returns a state without steps, of the pairs of ``group``, which runs continue; raises InputError for others."""
    known = {output.name: input.name for output, input in group.facts.pairs}
    if pairs is not None and dict(pairs) != known:
        raise InputError(f"the States of this Session are {known}, not {dict(pairs)}; make another Session for others")
    return _new_state(group, capacity, sizes_of(group, capacity))


def _new_state(group: StateGroup, capacity: int | None, sizes: Mapping[str, int]) -> State:
    fixed, names = group.facts.capacities()
    contents = StateContents(capacity if names else min(fixed.values(), default=None), sizes)
    group.continue_with(contents)
    return State(group, contents)


def _integer(subject: str, value: object) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        return index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"{subject} is {value!r}; legal: a whole number") from None


def _with(shape: Sequence[int], axis: int | None, steps: int | None) -> tuple[int, ...]:
    """Returns ``shape`` with ``steps`` along ``axis``, where there are both."""
    return tuple(steps if a == axis and steps is not None else extent for a, extent in enumerate(shape))


def _fitted(extents: Sequence[Any], shape: Sequence[int]) -> tuple[int, ...]:
    """Returns ``shape`` where ``extents`` are open, else the numbers that they are."""
    if len(extents) != len(shape):
        raise InputError(f"a value has shape {tuple(shape)}; the state has {len(extents)} axes")
    return tuple(e if isinstance(e, int) else n for e, n in zip(extents, shape, strict=True))


def _part(tensor: Tensor, axis: int | None, steps: int) -> Tensor:
    """Returns the first ``steps`` of ``tensor`` along ``axis``, all of it without one; nothing is copied."""
    if axis is None or tensor.shape[axis] == steps:
        return tensor
    shape = _with(tensor.shape, axis, steps)
    return Tensor(tensor.storage, tensor.dtype, shape, tensor.strides, tensor.byte_offset, readonly=tensor.readonly)


def _host_array(tensor: Tensor) -> np.ndarray[Any, Any]:
    return np.asarray(tensor if tensor.storage.kind.host_readable else tensor.to_device("cpu"))
