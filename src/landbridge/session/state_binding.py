"""Makes the States of a Session: the first, with which its outputs become inputs of the next run, and further ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from landbridge.errors import InputError
from landbridge.executable.executable import Executable
from landbridge.executable.parts import TensorSpec
from landbridge.session.find_states import find_states
from landbridge.session.state import State
from landbridge.session.state_group import Halves, StateContents, StateGroup, StateMemory
from landbridge.session.state_memory import check_separate, memory_of_application, steps_of
from landbridge.session.state_places import clear_behind
from landbridge.session.state_request import StateRequest
from landbridge.session.state_sizes import check_memory, checked_length, sizes_of, whole_number
from landbridge.tensor import Tensor
from landbridge.vm.device_binding import DeviceBinding
from landbridge.vm.entry import Entry

#: Makes states of all (output, input) pairs, or of none, in this memory (None: new memory, zeroed); the sizes are the
#: dimensions that they determine, by name.
BindPairs: TypeAlias = Callable[
    [Sequence[tuple[TensorSpec, TensorSpec]], tuple[Halves, ...] | None, Mapping[str, int]], None
]


def first_state(
    executable: Executable,
    entry: Entry,
    memory: StateMemory,
    request: StateRequest,
    pairs: Sequence[object],
    bound: Mapping[str, Tensor],
    places: Mapping[str, DeviceBinding],
    bind: BindPairs,
) -> tuple[State, StateGroup]:
    """Returns the first state of a Session, which runs continue, after ``bind`` was called for its pairs, and what it
    will have in common with further ones.

    ``pairs`` are no part of a State, and with them there can be none. ``bound``: what runs have as inputs and outputs,
    by name. ``places``: the memory of those of devices, by name. Nothing has changed where it raises.
    """
    if pairs:
        raise InputError(
            "bind_state(output, input) has bound pairs of this Session; make another Session, and name all pairs at "
            "once: bind_state({output: input, ...})"
        )
    facts = find_states(executable, request.pairs)
    group = StateGroup(facts, memory, entry, executable.metadata.get("model", ""))
    halves = {spec.name for pair in facts.pairs for spec in pair}
    others_bound = {name: tensor for name, tensor in bound.items() if name not in halves}
    contents = _contents_of(group, executable, request, others_bound, places)
    given, contents.parked = contents.parked, None
    bind(facts.pairs, given, contents.sizes)
    group.current = contents
    _begin_given(group, contents, places)
    return State(group, contents), group


def further_state(
    group: StateGroup,
    executable: Executable,
    request: StateRequest,
    bound: Mapping[str, Tensor],
    places: Mapping[str, DeviceBinding],
) -> State:
    """Returns a state of the pairs of ``group``, which runs continue; raises InputError for others.

    ``bound`` and ``places`` as for ``first_state``.
    """
    known = {output.name: input.name for output, input in group.facts.pairs}
    if request.pairs is not None and dict(request.pairs) != known:
        raise InputError(
            f"the States of this Session are {known}, not {dict(request.pairs)}; make another Session for others"
        )
    contents = _contents_of(group, executable, request, bound, places)
    group.continue_with(contents)
    _begin_given(group, contents, places)
    return State(group, contents)


def _begin_given(group: StateGroup, contents: StateContents, places: Mapping[str, DeviceBinding]) -> None:
    """Prepare memory that the application gave for the first run."""
    if not contents.is_given:
        return
    group.write_counts(contents)
    axes = group.facts.axes
    for (_, spec), halves in zip(group.facts.pairs, group.memory_of(contents) or (), strict=False):
        if spec.name in places and spec.name in axes:
            clear_behind(halves[1], axes[spec.name], contents.length)


def _contents_of(
    group: StateGroup,
    executable: Executable,
    request: StateRequest,
    bound: Mapping[str, Tensor],
    places: Mapping[str, DeviceBinding],
) -> StateContents:
    """Returns the contents that ``request`` describes, parked in memory that it gives."""
    facts, memory, capacity = group.facts, None, request.capacity
    if request.memory is not None:
        in_place = {input for _, input in executable.main.aliases}
        memory = memory_of_application(facts, request.memory, in_place, places)
        names = [spec.name for _, spec in facts.pairs]
        check_separate(names, memory, group.memories(), bound)
        steps = steps_of(facts, memory)
        if capacity is not None and steps is not None and whole_number("capacity", capacity) != steps:
            raise InputError(f"capacity={capacity}: memory= has {steps} steps; leave capacity out")
        capacity = steps if capacity is None else capacity
    elif request.length is not None:
        raise InputError(f"length={request.length!r} says how many steps memory= holds; give both, or neither")
    sizes = sizes_of(facts, capacity)
    fixed, _ = facts.capacities()
    steps = next(iter(sizes.values()), min(fixed.values(), default=None))
    if memory is None:
        check_memory(facts, steps)
    contents = StateContents(steps, sizes)
    contents.length = 0 if request.length is None else checked_length(request.length, steps)
    contents.parked, contents.is_given = memory, memory is not None
    return contents
