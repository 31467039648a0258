"""The programs of a model in which an input decides what the program does, such as an axis: one for each legal
value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import product
from math import prod
from typing import Any, TypeAlias

import numpy as np

from landbridge.errors import CompileError, InputError, UnsupportedOperatorError
from landbridge.frontend.segment_values import is_cut
from landbridge.frontend.wanted_inputs import WantedInput
from landbridge.ir.budget import SearchBudget
from landbridge.ir.main_attributes import input_elements, set_input_elements
from landbridge.ir.module import IRModule
from landbridge.records import record

#: The most values that are tried: enough for three axes of four dimensions.
_MOST_TRIED = 512
#: The most programs that result.
_MOST_PROGRAMS = 32

#: The elements of inputs, by name.
Chosen: TypeAlias = Mapping[str, tuple[int, ...]]


@record(frozen=True, eq=False)
class ChosenProgram:
    """A module, and in ``chosen`` the values of inputs that it is for; none if there is only one program. One that
    ``is_spare`` is dropped if it cannot be compiled.
    """

    module: IRModule
    chosen: list[Chosen] = field(default_factory=list)
    is_spare: bool = False


@record(frozen=True, eq=False)
class Imported:
    """The modules of a model: the first of its programs, ``others`` for other ranges of its dimensions, in which it
    computes something else, as an axis of one element that it drops, and ``spares``, which are dropped if they cannot
    be compiled.

    Spares are for sizes that no other module covers: one for runs in which an extent is 1 and broadcasts to that of
    another input, and those in which a tensor has no elements. ``walks``: the reason of each walk of
    the model; empty for the first.
    """

    module: IRModule
    others: Sequence[IRModule] = ()
    spares: Sequence[IRModule] = ()
    walks: Sequence[str] = ()

    def programs(self) -> list[ChosenProgram]:
        """Returns them as programs for all values of inputs."""
        if not self.others and not self.spares:
            return [ChosenProgram(self.module)]
        known = [ChosenProgram(module, [{}]) for module in (self.module, *self.others)]
        return [*known, *(ChosenProgram(module, [{}], is_spare=True) for module in self.spares)]


def each_program(make: Callable[[Chosen, bool], Imported], search: SearchBudget) -> list[ChosenProgram]:
    """Returns the programs that ``make`` builds for each legal value of the inputs whose values it requires.

    ``search`` counts the nodes that ``make`` imports for these values. If they are too many, returns one program in
    which the nodes that require the values run on the host; the second argument of ``make`` requests that. Raises the
    error of ``make`` if no value is legal, and UnsupportedOperatorError, which names the inputs, if there are too many
    values.
    """
    wanted: dict[str, WantedInput] = {}
    try:
        return make({}, False).programs()
    except UnsupportedOperatorError as error:
        wanted, first = _chosen(error), error
    if not wanted:
        raise first
    while True:
        try:
            return _tried(lambda chosen: make(chosen, False), wanted, first, search)
        except _MoreWanted as more:
            wanted = {**wanted, **more.inputs}
        except _TooManyError as error:
            try:
                return make({}, True).programs()
            except CompileError:
                raise error from None


class _TooManyError(UnsupportedOperatorError):
    """Raised if inputs choose among more programs than are allowed."""


class _MoreWanted(Exception):
    def __init__(self, inputs: dict[str, WantedInput]) -> None:
        self.inputs = inputs


def _tried(
    build: Callable[[Chosen], Imported],
    wanted: Mapping[str, WantedInput],
    first: UnsupportedOperatorError,
    search: SearchBudget,
) -> list[ChosenProgram]:
    choices, before = prod(each.choices for each in wanted.values()), search.spent
    if choices > _MOST_TRIED:
        raise _too_many(wanted, first)
    programs: dict[Hashable, ChosenProgram] = {}
    others: dict[Hashable, ChosenProgram] = {}
    ended: CompileError | InputError | None = None
    for number, chosen in enumerate(_values(wanted)):
        if before + (search.spent - before) * choices > search.limit * max(number, 1):  # if all are as large
            raise _too_many(wanted, first)
        try:
            modules = build(chosen)
        except (CompileError, InputError) as error:
            more = _chosen(error).items() - wanted.items()
            if more:
                raise _MoreWanted(dict(more)) from None
            ended = ended or error
            continue
        programs.setdefault(_content(modules.module), ChosenProgram(modules.module)).chosen.append(chosen)
        for module in modules.others:
            others.setdefault(_content(module), ChosenProgram(module)).chosen.append(chosen)
        if len(programs) > _MOST_PROGRAMS:
            raise _too_many(wanted, first)
    if not programs:
        raise ended or first
    if len(programs) > 1 and any(is_cut(op) for each in programs.values() for op in each.module.main.body.block.ops):
        raise _too_many(wanted, first)  # programs in which data decide sizes
    fit = len(programs) + len(others) <= _MOST_PROGRAMS
    return [*programs.values(), *(others.values() if fit else ())]


def _values(wanted: Mapping[str, WantedInput]) -> Iterator[dict[str, tuple[int, ...]]]:
    each = [product(range(w.low, w.high + 1), repeat=w.count) for w in wanted.values()]
    for values in product(*each):
        yield dict(zip(wanted, values, strict=True))


def _chosen(error: CompileError | InputError) -> dict[str, WantedInput]:
    """Returns the inputs whose values ``error`` requires because they decide what the program does."""
    found = error.needed if isinstance(error, UnsupportedOperatorError) else None
    return {name: each for name, each in found.items() if each.chosen} if isinstance(found, dict) else {}


def _too_many(wanted: Mapping[str, WantedInput], first: UnsupportedOperatorError) -> _TooManyError:
    names = ", ".join(f"{name!r} ({each.choices} values)" for name, each in wanted.items())
    return _TooManyError(
        f"{first}\nEach value of input {names} is another program; there may be {_MOST_PROGRAMS}, of {_MOST_TRIED} "
        f"values that are tried, fewer in a large model: fix it by constants={{{next(iter(wanted))!r}: ...}}"
    )


def _content(module: IRModule) -> Hashable:
    """Returns a key that is equal for modules that differ only in the elements of their inputs."""
    elements = input_elements(module.main)
    set_input_elements(module.main, {})
    text = str(module.op)
    set_input_elements(module.main, elements)
    values = {name: each for name, each in elements.items() if any(not isinstance(e, int) for e in each)}
    return text, str(values), tuple((name, _array_key(array)) for name, array in module.constants.items())


def _array_key(array: np.ndarray[Any, Any]) -> Hashable:
    location = array.ctypes.data if array.nbytes > 1 << 16 else array.tobytes()
    return array.shape, str(array.dtype), location
