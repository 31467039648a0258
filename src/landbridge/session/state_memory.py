"""Memory of the application that a State is given, used in place: the host's, or that of a device."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import combinations
from typing import Any

from landbridge.errors import HostViewError, InputError, ShapeError, ZeroCopyError
from landbridge.executable.bound_sizes import BoundSizes
from landbridge.executable.parts import TensorSpec
from landbridge.memory.borrowed import is_host_memory
from landbridge.memory.repeated_addresses import shifts
from landbridge.session.find_states import StateFacts
from landbridge.session.open_arguments import check_borrowed, memory_for
from landbridge.session.state_group import Halves
from landbridge.session.state_places import on_device
from landbridge.tensor import Tensor, asarray
from landbridge.vm.device_binding import DeviceBinding
from landbridge.vm.sliding_windows import whole_memory


def memory_of_application(
    facts: StateFacts, given: object, in_place: Collection[str], places: Mapping[str, DeviceBinding]
) -> tuple[Halves, ...]:
    """Returns the memory ``given`` for each state of ``facts``, by the name of the input, as it is written and read.

    ``in_place``: the inputs whose kernels update one memory. The others have two that swap: what is read first, and
    what is written first. ``places``: the memory of inputs and outputs of devices, by name; the others are the host's.

    Raises InputError where one is missing, has another shape or dtype, or shares bytes with another, and ZeroCopyError
    where it cannot be used in place: it is elsewhere, read-only, has gaps or is not aligned to its elements.
    """
    names = [spec.name for _, spec in facts.pairs]
    if not isinstance(given, Mapping) or set(given) != set(names):
        found = list(given) if isinstance(given, Mapping) else type(given).__name__
        raise InputError(f"memory= is given as {found}; legal: a dict by the names of the inputs, {names}")
    bound, memory = BoundSizes(), []
    for output, spec in facts.pairs:
        value = given[spec.name]
        if spec.name in facts.slides:
            raise InputError(
                f"state {spec.name!r} is the last samples of a stream and slides through memory, which the Session "
                "allocates; leave memory= out, and copy values with state.assign(values)"
            )
        if spec.name in in_place:
            tensor = _used_in_place(spec, value, places.get(spec.name))
            halves = tensor, tensor
        elif isinstance(value, tuple) and len(value) == 2:
            read, written = (
                _used_in_place(spec, each, places.get(half.name))
                for each, half in zip(value, (spec, output), strict=True)
            )
            halves = written, read
        else:
            raise InputError(
                f"state {spec.name!r} has two memories, which swap at each run, as the program does not update one in "
                "place; give a tuple of two, what is read first and what is written first, or compile with "
                "alias='auto', which shows why"
            )
        for half in halves:
            try:
                bound.add(spec, half.shape)
            except ShapeError as error:
                raise InputError(f"memory= for state {spec.name!r}: {error}") from None
        memory.append(halves)
    return tuple(memory)


def _used_in_place(spec: TensorSpec, value: Any, place: DeviceBinding | None) -> Tensor:
    """Returns the memory of ``value``, not copied, as a Tensor that runs may write, in ``place`` (None: the host's)."""
    value = memory_for(spec, value)
    check_borrowed(spec, value)
    tensor = asarray(value, copy=False)
    subject = f"memory= for state {spec.name!r}"
    if tensor.dtype != spec.dtype:
        raise InputError(f"{subject} is {tensor.dtype}; legal: {spec.dtype}")
    if place is None and not is_host_memory(tensor.storage):
        raise ZeroCopyError(f"{subject} is memory of {tensor.device}; legal: memory of the host")
    if tensor.readonly:
        raise ZeroCopyError(f"{subject} is read-only, and runs write it; give memory that may be written")
    if not tensor.is_contiguous:
        raise ZeroCopyError(f"{subject} is not C-contiguous: strides {tensor.strides}; give a new array")
    if place is not None:
        return on_device(subject, tensor, place)
    try:
        address = tensor.data_address
    except HostViewError as error:
        raise ZeroCopyError(f"{subject}: {error}") from error
    if address % tensor.itemsize:
        raise ZeroCopyError(
            f"{subject} is at address {address:#x}, not aligned to the {tensor.itemsize} bytes of {spec.dtype}; give a "
            "new array"
        )
    return tensor


def steps_of(facts: StateFacts, memory: Iterable[Halves]) -> int | None:
    """Returns for how many steps there is ``memory``; None for states that do not grow.

    Raises InputError where the states have memory for different numbers of them.
    """
    axes, found = facts.axes, {}
    for (_, spec), halves in zip(facts.pairs, memory, strict=True):
        if spec.name in axes:
            found[spec.name] = halves[1].shape[axes[spec.name]]
    if len(set(found.values())) > 1:
        raise InputError(f"memory= has steps {found}; legal: one number of them for all states")
    return next(iter(found.values()), None)


def check_separate(
    names: Iterable[str], memory: Iterable[Halves], states: Iterable[Halves], bound: Mapping[str, Tensor]
) -> None:
    """Raises InputError where two of ``memory``, of the states ``names``, share bytes, or one does with other
    ``states``, or with what is ``bound`` to other inputs and outputs, by name.
    """
    mine = [(name, half) for name, halves in zip(names, memory, strict=True) for half in _distinct(halves)]
    for (name, half), (other, second) in combinations(mine, 2):
        if shares_bytes(half, second):
            raise InputError(f"memory= for states {name!r} and {other!r} shares bytes; give each memory of its own")
    theirs = [half for halves in states for half in halves]
    for name, half in mine:
        if any(shares_bytes(half, taken) for taken in theirs):
            raise InputError(
                f"memory= for state {name!r} is memory of another State of this Session; continue that one, after "
                "state.reset() or state.rewind(length), or give memory of its own"
            )
        shared = [other for other, tensor in bound.items() if shares_bytes(half, tensor)]
        if shared:
            raise InputError(
                f"memory= for state {name!r} shares bytes with what is bound to {shared[0]!r}; give memory of its own"
            )


def _distinct(halves: Halves) -> tuple[Tensor, ...]:
    return halves[:1] if halves[0] is halves[1] else halves


def shares_bytes(one: Tensor, other: Tensor) -> bool:
    """Returns whether elements of ``one`` and ``other`` may lie in the same bytes, whoever borrowed them, now or after
    runs that slide one of them.

    Memory that went with its device has no bytes.
    """
    if not (one.nbytes and other.nbytes) or one.storage.is_gone or other.storage.is_gone:
        return False
    one, other = whole_memory(one), whole_memory(other)
    if one.storage is other.storage:
        (low, high), (start, stop) = one.byte_range, other.byte_range
    elif "none" in (one.storage.kind.host_access, other.storage.kind.host_access):
        return False
    else:
        (low, high), (start, stop) = _addresses(one), _addresses(other)
    return any(low + shift < stop and start < high + shift for shift in shifts(low, start))


def _addresses(tensor: Tensor) -> tuple[int, int]:
    low, high = tensor.byte_range
    start = tensor.data_address - tensor.byte_offset
    return start + low, start + high
