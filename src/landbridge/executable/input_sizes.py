"""InputSizes: derives the open dimensions of a program from the shapes of its inputs, for one run after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from landbridge.executable.bound_sizes import sizes_of_inputs, solvable_form
from landbridge.executable.parts import TensorSpec
from landbridge.sizes.size import Extent, Size
from landbridge.sizes.terms import Symbol


class InputSizes:
    """Derives the sizes of open dimensions from inputs of ``specs``.

    Extents that several axes or elements share are solved once: a decoder has its batch and the length of its past in
    each of its caches.
    """

    def __init__(self, specs: Sequence[TensorSpec]) -> None:
        self._specs = tuple(specs)
        self._ranks = [(len(spec.shape), len(spec.elements)) for spec in specs]
        every = [extent for spec in specs for extent in (*spec.shape, *spec.elements)]
        first: dict[Extent, int] = {}
        #: For each axis and element where the first one is that has the same extent.
        self._same_as = [first.setdefault(extent, at) for at, extent in enumerate(every)]
        self._fixed: list[tuple[int, int]] = []
        #: Extents ``factor * symbol + plus``, which determine a dimension, and those that others determine.
        self._solved: list[tuple[int, Symbol, int, int]] = []
        self._derived: list[tuple[int, Size]] = []
        for extent, at in first.items():
            form = solvable_form(extent)
            if not isinstance(extent, Size):
                self._fixed.append((at, extent))
            elif form is not None:
                self._solved.append((at, *form))
            else:
                self._derived.append((at, extent))

    def of(self, shapes: Mapping[str, Sequence[int]], elements: Mapping[str, Sequence[int]]) -> dict[str, int]:
        """Returns the sizes of the dimensions, by name, where inputs have ``shapes`` and, those that declare them,
        ``elements``, by name. Raises ShapeError as ``sizes_of_inputs`` does.
        """
        found = self._found(shapes, elements)
        return sizes_of_inputs(self._specs, shapes, elements) if found is None else found

    def _found(
        self, shapes: Mapping[str, Sequence[int]], elements: Mapping[str, Sequence[int]]
    ) -> dict[str, int] | None:
        """Returns what ``of`` does; None where something does not fit."""
        given: list[int] = []
        for spec, (axes, count) in zip(self._specs, self._ranks, strict=True):
            shape = shapes[spec.name]
            if len(shape) != axes:
                return None
            given += shape
            if count:
                read = elements[spec.name]
                if len(read) != count:
                    return None
                given += read
        if [given[at] for at in self._same_as] != given:
            return None
        for at, number in self._fixed:
            if given[at] != number:
                return None
        values: dict[str, int] = {}
        for at, symbol, factor, plus in self._solved:
            units, left = divmod(given[at] - plus, factor)
            if left or units < symbol.low or (symbol.high is not None and units > symbol.high):
                return None
            size = units * symbol.unit
            if values.setdefault(symbol.name, size) != size:
                return None
        if any(extent.at(values) != given[at] for at, extent in self._derived):
            return None
        return values
