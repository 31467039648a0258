"""Progression: runs whose lengths advance evenly, as those of decode steps do, prepared together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import sub
from typing import TypeAlias

import numpy as np

from landbridge.executable.bound_sizes import says_dimension
from landbridge.executable.parts import TensorSpec
from landbridge.records import record
from landbridge.session.open_instance import Instance, InstancesAhead
from landbridge.session.open_program import OpenProgram

#: Runs that are prepared together: at first, and the most of a progression that goes on.
_FIRST_AHEAD, _MOST_AHEAD = 32, 128
#: The most numbers that are computed together, so that those of a large program take little memory.
_MOST_NUMBERS = 1 << 17

#: Numbers by argument: shapes, or elements that are read.
Rows: TypeAlias = tuple[tuple[int, ...], ...]


@record(frozen=True, slots=True)
class Lengths:
    """Where the sizes of a run come from: the ``shapes`` of its arguments, the ``elements`` that are read, and the
    ``values`` of the dimensions. As a distance: how much each of them changes from one run to the next.
    """

    shapes: Rows
    elements: Rows
    values: tuple[int, ...]


class Progression:
    """Runs of program ``name`` which are prepared together: the lengths of each are ``distance``
    more than those of the run before, and those of the first that much more than ``before``.

    ``instances`` are theirs, ``carried`` the shapes of the states, the same in all of them.
    """

    def __init__(
        self,
        name: str,
        instances: InstancesAhead,
        before: Lengths,
        distance: Lengths,
        carried: Rows,
    ) -> None:
        self.name, self.carried, self.distance = name, carried, distance
        self._instances = instances
        count = len(instances)
        self._shapes = along(before.shapes, distance.shapes, count)
        self._elements = along(before.elements, distance.elements, count)
        self._values = [row for (row,) in along((before.values,), (distance.values,), count)]
        #: The number by which runs are told from each other: of an element, or of an axis.
        self._is_element, self._row, self._column, self._step = next(_advancing(distance))
        self._first = (self._elements if self._is_element else self._shapes)[0][self._row][self._column]

    def __len__(self) -> int:
        return len(self._instances)

    def number_of(self, shapes: Rows, elements: Rows) -> int | None:
        """Returns the number of the run whose arguments have ``shapes`` and ``elements``; None where it is not one of
        these.
        """
        rows = elements if self._is_element else shapes
        if self._row >= len(rows) or self._column >= len(rows[self._row]):  # nobody has checked the arguments of a call
            return None
        number, left = divmod(rows[self._row][self._column] - self._first, self._step)
        if left or not 0 <= number < len(self._values):
            return None
        is_found = self._elements[number] == elements and self._shapes[number] == shapes
        return number if is_found else None

    def instance(self, number: int) -> Instance:
        """Returns the instance of run ``number``."""
        return self._instances.at(number)

    def values(self, number: int) -> tuple[int, ...]:
        """Returns the values of the dimensions at run ``number``."""
        return self._values[number]

    def lengths(self, number: int) -> Lengths:
        """Returns the lengths of run ``number``."""
        return Lengths(self._shapes[number], self._elements[number], self._values[number])


class Progressions:
    """Recognises three new choices of dimensions with equal differences, or two whose difference is that of the last
    progression, and prepares the next runs.

    Together that takes a small part of the time of one after the other. Runs of other programs begin a new progression.
    The one before the newest is retained, for runs that go back a little.
    """

    def __init__(self) -> None:
        #: The newest first.
        self._prepared: tuple[Progression, ...] = ()
        self._last: Lengths | None = None
        #: How much the values of the dimensions changed at the last new choice.
        self._more: tuple[int, ...] | None = None
        #: How much they changed from run to run in the last progression.
        self._pace: tuple[int, ...] | None = None
        self._program: OpenProgram | None = None
        self._count = _FIRST_AHEAD

    def find(self, shapes: Rows, elements: Rows, carried: Rows) -> tuple[Progression, int] | None:
        """Returns the progression, and the number there, of the run whose arguments have ``shapes`` and ``elements``,
        and its states the shapes ``carried``; None where it was not prepared.
        """
        for progression in self._prepared:
            number = progression.number_of(shapes, elements)
            if number is not None and progression.carried == carried:
                return progression, number
        return None

    def forget(self) -> None:
        """Release all instances."""
        self._prepared = ()

    def go_on(self, progression: Progression, number: int, program: OpenProgram, specs: Sequence[TensorSpec]) -> None:
        """Prepare the runs after the last one of ``progression``, of ``program``, when that is run ``number``.

        ``specs`` are the inputs that callers give.
        """
        if number < len(progression) - 1 or progression is not self._prepared[0]:
            return
        self._program, self._last = program, progression.lengths(number)
        self._more = progression.distance.values
        instance = progression.instance(number)
        self._prepare(self._last, progression.distance, instance, progression.name, program, specs, progression.carried)

    def prepare_after(
        self,
        now: Lengths,
        instance: Instance,
        name: str,
        program: OpenProgram,
        specs: Sequence[TensorSpec],
        carried: Rows,
    ) -> None:
        """Prepare the runs that are expected after one of new sizes, ``now``, whose own is ``instance`` of ``program``,
        its name being ``name``.

        ``specs`` are the inputs that callers give; the others are states, and keep their shapes ``carried``. All that
        runs of these sizes would be checked for holds.
        """
        if program is not self._program:
            self._last = self._more = self._pace = None
        before, known = self._last, self._more
        self._program, self._last = program, now
        self._more = None if before is None else tuple(map(sub, now.values, before.values))
        if before is None or self._more not in (known, self._pace):
            return
        distance = _between(before, now)
        if distance is None or _shrinks(distance) or next(_advancing(distance), None) is None:
            return
        # elements that are a multiple of one dimension and a number agree now and before, so they do later
        if not all(says_dimension(extent) for spec in specs for extent in spec.elements):
            return
        if self._more != self._pace:
            self._count = _FIRST_AHEAD
        self._prepare(now, distance, instance, name, program, specs, carried)

    def _prepare(
        self,
        now: Lengths,
        distance: Lengths,
        instance: Instance,
        name: str,
        program: OpenProgram,
        specs: Sequence[TensorSpec],
        carried: Rows,
    ) -> None:
        given = dict(zip((spec.name for spec in specs), zip(now.shapes, distance.shapes, strict=True), strict=True))
        inputs = [given.get(each.name) or (instance.shape_of(each), ()) for each in program.executable.main.inputs]
        values = np.array([row for (row,) in along((now.values,), (distance.values,), self._count)], np.int64)
        instances = program.instances_along(values, _expected(inputs, self._count))
        if instances is None:
            return
        self._pace = distance.values
        most = max(_FIRST_AHEAD, min(_MOST_AHEAD, _MOST_NUMBERS // program.width))
        self._count = min(2 * self._count, most)
        self._prepared = (Progression(name, instances, now, distance, carried), *self._prepared[:1])


def _between(first: Lengths, second: Lengths) -> Lengths | None:
    """Returns how far ``second`` is from ``first``; None where they have other ranks."""
    shapes, elements = _distance(first.shapes, second.shapes), _distance(first.elements, second.elements)
    values = _distance((first.values,), (second.values,))
    if shapes is None or elements is None or values is None:
        return None
    return Lengths(shapes, elements, *values)


def _distance(first: Rows, second: Rows) -> Rows | None:
    if list(map(len, first)) != list(map(len, second)):
        return None
    return tuple([tuple([b - a for a, b in zip(*rows, strict=True)]) for rows in zip(first, second, strict=True)])


def _shrinks(distance: Lengths) -> bool:
    """Returns whether an extent becomes smaller, and may become 0, which another program is for."""
    return any(each < 0 for row in (*distance.shapes, distance.values) for each in row)


def _advancing(distance: Lengths) -> Iterator[tuple[bool, int, int, int]]:
    """Yields the elements and extents that change: whether it is an element, of which argument, its number there, and
    how much.
    """
    for is_element, rows in ((True, distance.elements), (False, distance.shapes)):
        for row, numbers in enumerate(rows):
            yield from ((is_element, row, column, more) for column, more in enumerate(numbers) if more)


def along(rows: Rows, distance: Rows, count: int) -> list[Rows]:
    """Returns ``rows`` of each of the next ``count`` runs."""
    ahead = np.arange(1, count + 1)[:, None]
    columns = [
        list(map(tuple, (np.array(row, np.int64) + ahead * np.array(more, np.int64)).tolist()))
        if any(more)
        else [row] * count
        for row, more in zip(rows, distance, strict=True)
    ]
    return list(zip(*columns, strict=True)) if columns else [()] * count


def _expected(inputs: Sequence[tuple[tuple[int, ...], tuple[int, ...]]], count: int) -> np.ndarray:
    """Returns the shapes of inputs at each of the next ``count`` runs, padded with 1 to one rank.

    ``inputs``: for each its shape now, and how much that changes from run to run (empty: not at all).
    """
    rank = max((len(shape) for shape, _ in inputs), default=0)
    now = np.array([[*shape, *[1] * (rank - len(shape))] for shape, _ in inputs], np.int64)
    more = np.array([[*each, *[0] * (rank - len(each))] for _, each in inputs], np.int64)
    steps = np.arange(1, count + 1)[:, None, None]
    found: np.ndarray = (now + steps * more).reshape(count, len(inputs), rank)
    return found
