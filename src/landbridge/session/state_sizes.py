"""The numbers of a State: how many steps it has memory for, and the shapes that follow."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from typing import TypeVar

from landbridge.dtypes import dtype as dtype_facts
from landbridge.errors import InputError, StateCapacityError
from landbridge.process.available_memory import check_available
from landbridge.session.find_states import StateFacts
from landbridge.sizes.printing import closest_text, range_text
from landbridge.sizes.size import Extent

_Extent = TypeVar("_Extent", bound=Extent)


def sizes_of(facts: StateFacts, capacity: int | None) -> dict[str, int]:
    """Returns the dimensions that are ``capacity``, by name; raises InputError where the program does not take it."""
    fixed, symbols = facts.capacities()
    if not fixed and not symbols:
        if capacity is not None:
            raise InputError(f"capacity={capacity}: this state does not grow; leave it out")
        return {}
    if capacity is None:
        if symbols:
            raise InputError(
                "capacity= is needed: it says for how many steps the state has memory, which the program leaves open"
            )
        return {}
    capacity = whole_number("capacity", capacity)
    if capacity < 1:
        raise InputError(f"capacity={capacity}; legal: from 1")
    wrong = {name: number for name, number in fixed.items() if number != capacity}
    if wrong:
        name, number = next(iter(wrong.items()))
        raise InputError(
            f"capacity={capacity}: the program was compiled with {number} steps of {name!r}; legal: {number}, or "
            "compile with that extent open, as a name in shapes="
        )
    for symbol in symbols:
        units, left = divmod(capacity, symbol.unit)
        if left or units < symbol.low or (symbol.high is not None and units > symbol.high):
            raise InputError(
                f"capacity={capacity}; legal: dimension {symbol.name!r}, which is {range_text(symbol)}: "
                f"{closest_text(symbol, capacity)}"
            )
    return {symbol.name: capacity for symbol in symbols}


def check_memory(facts: StateFacts, capacity: int | None) -> None:
    """Raises OutOfMemoryError where ``capacity`` steps need more bytes than there are, whatever the other sizes of the
    first run are: those that are open count as 1.
    """
    axes = facts.axes
    least = sum(
        dtype_facts(spec.dtype).itemsize
        * prod(extent for extent in shape_with(spec.shape, axes.get(spec.name), capacity) if isinstance(extent, int))
        for _, spec in facts.pairs
    )
    check_available(least, f"a state of {capacity} steps", "give it a smaller capacity")


def whole_number(subject: str, value: object) -> int:
    """Returns ``value`` as an integer; raises InputError, which names ``subject``, for what is none."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"{subject} is {value!r}; legal: a whole number") from None


def checked_length(
    length: object, most: int | None, reason: str = "the capacity is {}", error: type[InputError] = StateCapacityError
) -> int:
    """Returns ``length`` as an integer; raises InputError unless it is a number of steps from 0, and ``error``, for
    ``reason``, where it is more than ``most``. None: the state has no steps.
    """
    if most is None:
        raise InputError("this state does not grow and has no length; reset() makes it zeros")
    number = whole_number("length", length)
    if number < 0:
        raise InputError(f"length {number} is negative; legal: 0 to {most}")
    if number > most:
        raise error(f"length {number}: {reason.format(most)}; legal: 0 to {most}")
    return number


def shape_with(shape: Sequence[_Extent], axis: int | None, steps: int | None) -> tuple[_Extent | int, ...]:
    """Returns ``shape`` with ``steps`` along ``axis``, where there are both."""
    return tuple(steps if a == axis and steps is not None else extent for a, extent in enumerate(shape))


def fitted(extents: Sequence[Extent], shape: Sequence[int]) -> tuple[int, ...]:
    """Returns ``shape`` where ``extents`` are open, else the numbers that they are; raises InputError for another
    rank.
    """
    if len(extents) != len(shape):
        raise InputError(f"a value has shape {tuple(shape)}; the state has {len(extents)} axes")
    return tuple(e if isinstance(e, int) else n for e, n in zip(extents, shape, strict=True))
