"""StateGroup: the states of a Session, one of which runs continue at a time, and the steps that runs make."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, Protocol, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from landbridge.dtypes import numpy_dtype
from landbridge.errors import InputError, StateCapacityError
from landbridge.executable.parts import StateGrowth
from landbridge.session.find_states import StateFacts
from landbridge.session.host_values import host_values
from landbridge.sizes.size import Extent, Size
from landbridge.tensor import Tensor
from landbridge.tensor.copy import copy_tensor
from landbridge.vm.entry import Entry

#: What a run writes and what it reads of a state: one Tensor twice where that is in place.
Halves: TypeAlias = tuple[Tensor, Tensor]


class StateMemory(Protocol):
    """Holds the memory of the state that runs continue."""

    def take(self) -> tuple[Halves, ...] | None:
        """Returns the memory of each state; None before the first run decides its sizes."""

    def put(self, memory: Sequence[Halves] | None, sizes: Mapping[str, int], *, is_given: bool = False) -> None:
        """Let runs continue with ``memory``; None: with new memory, zeroed. ``sizes`` are the dimensions that the state
        determines, by name. Memory that the application has given (``is_given``) is used in place or not at all.
        """

    def allocate(self, number: int, shape: Sequence[int]) -> Halves:
        """Returns new memory of ``shape``, zeroed, for pair ``number``."""


class StateContents:
    """The contents of one State: ``length`` of ``capacity`` steps are filled (0 and None where it does not grow).

    ``sizes`` has, by name, the dimensions that are the capacity. ``parked`` is its memory while runs continue another
    State; None where no memory was allocated yet. ``is_given``: the application gave it its memory.
    """

    def __init__(self, capacity: int | None, sizes: Mapping[str, int]) -> None:
        self.capacity, self.sizes = capacity, dict(sizes)
        self.length = 0
        self.parked: tuple[Halves, ...] | None = None
        self.is_given = False

    def check_step(self, before: int, after: int) -> None:
        """Raises InputError unless ``before`` is the current length, and StateCapacityError where ``after`` steps
        exceed the capacity. A run is checked before it writes anything.
        """
        if before != self.length:
            way_out = (
                f"give it lengths that continue from {self.length}"
                if not 0 <= before < self.length
                else f"call state.rewind({before}) first"
            )
            raise InputError(f"the run continues from {before} steps, the state has {self.length}; {way_out}")
        if self.capacity is not None and after > self.capacity:
            larger = f"make more room with state.resize({after})" if self.sizes else "compile for a larger cache"
            raise StateCapacityError(
                f"the run needs {after} steps, {after - before} more than the {before} that are filled; the capacity "
                f"is {self.capacity}: {larger}, or drop steps with state.rewind(length)"
            )


class StateGroup:
    """The States of one Session: all have the same ``facts``, and the memory of one, ``current``, is bound."""

    def __init__(self, facts: StateFacts, memory: StateMemory, entry: Entry, model: str) -> None:
        self.facts, self.memory, self.entry, self.model = facts, memory, entry, model
        #: The state that runs continue.
        self.current: StateContents | None = None
        #: How many steps it will have when the run that was begun is over.
        self._after: int | None = None
        self._held: WeakKeyDictionary[object, StateContents] = WeakKeyDictionary()
        self._growths: dict[str, tuple[StateGrowth, ...]] = {}

    def hold(self, state: object, contents: StateContents) -> None:
        """Note that ``state`` has ``contents`` for as long as it lives."""
        self._held[state] = contents

    def memories(self) -> Iterator[Halves]:
        """Yields the memory of each recurrent state of every State that lives."""
        for contents in self._held.values():
            yield from self.memory_of(contents) or ()

    def continue_with(self, contents: StateContents) -> None:
        """Bind the memory of ``contents`` for the next runs; the State that was bound keeps its memory and content."""
        before = self.current
        if before is contents:
            return
        if before is not None:
            before.parked = self.memory.take()
        self.memory.put(contents.parked, contents.sizes, is_given=contents.is_given)
        self.current, contents.parked = contents, None

    def memory_of(self, contents: StateContents) -> tuple[Halves, ...] | None:
        """Returns the (written, read) Tensors of each recurrent state of ``contents``, bound or parked; None where no
        memory was allocated yet.
        """
        return self.memory.take() if self.current is contents else contents.parked

    def replace_memory(self, contents: StateContents, memory: tuple[Halves, ...] | None) -> None:
        """Make ``memory`` the memory of ``contents``; None: new memory, zeroed, at its next run."""
        contents.is_given = False
        if self.current is contents:
            self.memory.put(memory, contents.sizes)
        else:
            contents.parked = memory

    def begin(self, program: str, sizes: Mapping[str, int], read: Callable[[str], Any]) -> None:
        """Check a run of ``program`` with ``sizes`` before it writes anything; ``read`` returns an input by name.

        Raises StateCapacityError for steps beyond the capacity, InputError where the run does not continue the state,
        or would leave out a step.
        """
        state, has_failed, self._after = self.current, self._after is not None, None
        if state is None or state.capacity is None:
            return
        if has_failed:
            self.write_counts(state)
        counts, growths = self.facts.counts, self._growths_of(program)
        steps = {_steps(each, sizes, read, state.length if each.positions in counts else None) for each in growths}
        for before, after in steps:
            state.check_step(before, after)
        if steps:
            self._after = max(after for _, after in steps)

    def _growths_of(self, program: str) -> Sequence[StateGrowth]:
        """Returns the growths of ``program``, once where several states grow by the same steps: keys and values of all
        layers.
        """
        found = self._growths.get(program)
        if found is None:
            distinct: dict[Any, StateGrowth] = {}
            for each in self.facts.growths.get(program, {}).values():
                distinct.setdefault((each.before, each.after, each.positions, each.has_each), each)
            found = self._growths[program] = tuple(distinct.values())
        return found

    def commit(self) -> None:
        """Set the length of the current State to what ``begin`` computed; called when the run is over."""
        if self.current is not None and self._after is not None:
            self.current.length = self._after
        self._after = None

    def write_counts(self, contents: StateContents) -> None:
        """Let the states that count the steps of ``contents`` have its length, where they have memory."""
        for (_, spec), halves in zip(self.facts.pairs, self.memory_of(contents) or (), strict=False):
            if spec.name in self.facts.counts:
                target = halves[1]
                found = np.full(target.shape, contents.length, numpy_dtype(target.dtype))
                copy_tensor(target, Tensor.from_numpy_view(found), cause="length")

    def lengths(self) -> dict[str, np.ndarray[Any, Any]]:
        """Returns the values of those inputs that are the length of the state, by input name."""
        return {spec.name: np.full(spec.shape, self.length, spec.dtype) for spec in self.facts.lengths}

    @property
    def length(self) -> int:
        """Returns how many steps the state has that runs continue; 0 where it does not grow."""
        return 0 if self.current is None else self.current.length

    def check_settable(self, name: str) -> None:
        """Raises InputError where input ``name`` is the length of a state, or has contents that belong to a length."""
        if name in self.facts.counts or any(spec.name == name for spec in self.facts.lengths):
            raise InputError(f"input {name!r} is the length of the state, which gives it; use state.rewind(length)")
        if name in self.facts.axes:
            raise InputError(
                f"input {name!r} is a part of the state, with its length; use state.assign(values, length)"
            )

    def refuse_pairs(self) -> NoReturn:
        """Raises InputError: a further pair would not be a part of the states there are."""
        raise InputError(
            "this Session has States, made of all their pairs together; name this one too where the first is made: "
            "bind_state({output: input, ...})"
        )

    def check_readable(self, output: str) -> None:
        """Raises InputError where ``output`` is of a state that no run has continued since it was bound."""
        if any(source.name == output for source, _ in self.facts.pairs):
            raise InputError(f"output {output!r} is of a state that was bound since the last run; read state.tensors")


def _steps(
    growth: StateGrowth, sizes: Mapping[str, int], read: Callable[[str], Any], counted: int | None
) -> tuple[int, int]:
    """Returns how many steps a state has before and after a run with ``sizes``; ``read`` returns an input by name.

    ``counted``: the steps so far, where another state counts them. Raises InputError for positions that leave out a
    step.
    """
    first, positions = counted or 0, None
    if growth.positions and counted is None:
        positions = host_values(read(growth.positions))
        first = int(np.max(positions)) if positions.size else 0
    before, after = first + _at(growth.before, sizes), first + _at(growth.after, sizes)
    if growth.has_each and positions is not None and positions.size > 1:
        _check_each(growth, positions, before, after)
    return before, after


def _check_each(growth: StateGrowth, positions: np.ndarray[Any, Any], before: int, after: int) -> None:
    """Raises InputError unless ``positions`` are all from ``before`` to ``after``, in any order: of two steps at one
    position the last would stay, and another would be missing.
    """
    if not np.array_equal(np.sort(positions, axis=None), np.arange(before, after)):
        raise InputError(
            f"the new steps of {growth.name!r} are at the positions {positions.reshape(-1).tolist()} of "
            f"{growth.positions!r}; legal: each from {before} to {after - 1} once, in any order, as they continue the "
            "state"
        )


def _at(extent: Extent, sizes: Mapping[str, int]) -> int:
    return extent.at(sizes) if isinstance(extent, Size) else extent
