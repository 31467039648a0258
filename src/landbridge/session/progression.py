"""Progression: lengths that advance evenly from run to run, as those of decode steps do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import sub

import numpy as np

from landbridge.executable.bound_sizes import says_dimension
from landbridge.executable.parts import TensorSpec
from landbridge.records import record
from landbridge.session.open_instance import Instance
from landbridge.session.open_program import OpenProgram

#: Runs whose sizes are computed together: few enough that the instances of earlier sizes stay.
_AHEAD = 32

#: Numbers by argument: shapes, or elements that are read.
Rows = tuple[tuple[int, ...], ...]


@record(frozen=True, slots=True)
class Lengths:
    """Where the sizes of a run come from: the ``shapes`` of its arguments, the ``elements`` that are read, and the
    ``values`` of the dimensions. As a distance: how much each of them changes from one run to the next.
    """

    shapes: Rows
    elements: Rows
    values: tuple[int, ...]


class Progression:
    """Recognises three new choices of dimensions that are equally far apart, and computes those of the next runs.

    Together that takes a small part of the time of one after the other. Runs of other programs begin a new progression.
    """

    def __init__(self) -> None:
        self._last: Lengths | None = None
        #: How much the values of the dimensions changed at the last new choice.
        self._more: tuple[int, ...] | None = None
        self._program: OpenProgram | None = None

    def instances(
        self, now: Lengths, instance: Instance, program: OpenProgram, given_inputs: Callable[[], Sequence[TensorSpec]]
    ) -> Iterator[tuple[Lengths, Instance]]:
        """Yields instances of ``program`` for the runs that are expected after ``now``, whose own is ``instance``, with
        where their sizes come from.

        ``given_inputs`` returns the inputs that callers give; the others are states, and keep their shapes. All that
        runs of these sizes would be checked for holds.
        """
        before, known = (self._last, self._more) if program is self._program else (None, None)
        self._program, self._last = program, now
        self._more = None if before is None else tuple(map(sub, now.values, before.values))
        if before is None or self._more != known:
            return
        distance = _between(before, now)
        if distance is None or _shrinks(distance):
            return
        specs = given_inputs()
        # elements that are a multiple of one dimension and a number agree now and before, so they do later
        if not all(says_dimension(extent) for spec in specs for extent in spec.elements):
            return
        inputs = program.executable.main.inputs
        shapes = {spec.name: instance.shape_of(spec) for spec in inputs}
        shapes |= {spec.name: shape for spec, shape in zip(specs, now.shapes, strict=True)}
        more = {spec.name: row for spec, row in zip(specs, distance.shapes, strict=True)}
        values = [row for (row,) in _along((now.values,), (distance.values,))]
        expected = [(shapes[spec.name], more.get(spec.name)) for spec in inputs]
        instances = program.instances_along(np.array(values, np.int64), expected)
        shapes_along, elements_along = _along(now.shapes, distance.shapes), _along(now.elements, distance.elements)
        for later, row, read, numbers in zip(instances, shapes_along, elements_along, values, strict=False):
            self._last = Lengths(row, read, numbers)
            yield self._last, later


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


def _along(rows: Rows, distance: Rows) -> list[Rows]:
    """Returns ``rows`` of each of the next runs."""
    ahead = np.arange(1, _AHEAD + 1)[:, None]
    columns = [
        list(map(tuple, (np.array(row, np.int64) + ahead * np.array(more, np.int64)).tolist()))
        if any(more)
        else [row] * _AHEAD
        for row, more in zip(rows, distance, strict=True)
    ]
    return list(zip(*columns, strict=True)) if columns else [()] * _AHEAD
