"""IterationSizes: computes the dimensions in later iterations of a loop, as the shapes that an iteration gives are
those that the next one takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from math import prod
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np

from landbridge.dtypes import dtype
from landbridge.executable.bound_sizes import solvable_form
from landbridge.executable.parts import SizeGuard, TensorSpec
from landbridge.records import record
from landbridge.sizes.formulas import SizeFormulas
from landbridge.sizes.size import Extent, Size, all_at
from landbridge.sizes.terms import Symbol

if TYPE_CHECKING:
    from numpy.typing import NDArray

_Key = TypeVar("_Key")
_Answer = TypeVar("_Answer")
Shapes: TypeAlias = tuple[tuple[int, ...], ...]

#: The most answers that are retained, because the next run often begins with the same sizes.
_RETAINED = 8
#: The most units by which a dimension may grow in the iterations ahead, if it does not double.
_GROWS = 64


@record(frozen=True, slots=True, eq=False)
class IterationsAhead:
    """``count`` trips: the ``values`` of their dimensions, by name, one for all or an array.

    ``shapes``: of what they carry, before each of them and after the last, a row each, axis behind axis. ``nbytes``:
    the most that they give of each, ``nbytes_now`` what the first takes.
    """

    count: int
    values: dict[str, int | NDArray[np.int64]]
    shapes: NDArray[np.int64]
    nbytes: list[int]
    nbytes_now: list[int]


@record(frozen=True, slots=True, eq=False)
class _Form:
    """A dimension that an axis of a carried value determines: the extent is ``factor`` times its units, plus
    ``plus``.
    """

    symbol: Symbol
    axis: int
    factor: int
    plus: int

    def units(self, extent: int) -> int | None:
        """Returns the units where the axis has ``extent``; None where that is illegal or 0."""
        units, left = divmod(extent - self.plus, self.factor)
        high = self.symbol.high
        legal = not left and units >= max(self.symbol.low, 1) and (high is None or units <= high)
        return units if legal else None


class IterationSizes:
    """The sizes of a body that takes ``taken`` and gives ``given``, axes concatenated, where ``guards`` hold.

    ``taken`` may have dimensions of the enclosing program, which are in ``around``.
    """

    def __init__(
        self,
        taken: Sequence[TensorSpec],
        given: Sequence[TensorSpec],
        guards: Sequence[SizeGuard],
        around: Sequence[str],
    ) -> None:
        self._ranks = [len(spec.shape) for spec in taken]
        self._ends = [0, *accumulate(self._ranks)]
        self._items = [dtype(spec.dtype).itemsize for spec in given]
        before: list[Extent] = [extent for spec in taken for extent in spec.shape]
        self._after: list[Extent] = [extent for spec in given for extent in spec.shape]
        #: Whether each iteration gives as many axes as the next one takes.
        self.are_known = self._ranks == [len(spec.shape) for spec in given]
        self._forms: dict[str, _Form] = {}
        for axis, extent in enumerate(before):
            text = solvable_form(extent)
            if text is not None and text[0].name not in around:
                self._forms.setdefault(text[0].name, _Form(text[0], axis, text[1], text[2]))
        #: By how many units each grows from iteration to iteration, where all grow steadily.
        self._steps: dict[str, int] | None = {}
        for name, each in self._forms.items():
            step = self._after[each.axis] - before[each.axis] if self.are_known else None
            if not isinstance(step, int) or step % each.factor:
                self._steps = None
                break
            self._steps[name] = step // each.factor
        groups: tuple[list[Extent], ...] = (before, self._after, [g.found for g in guards], [g.legal for g in guards])
        self._formulas = SizeFormulas([extent for group in groups for extent in group])
        #: Where the groups of its numbers begin, but the first.
        self._columns = list(accumulate(map(len, groups[:3])))
        self._retained: dict[tuple[object, ...], IterationsAhead | None] = {}

    @property
    def names(self) -> frozenset[str]:
        """Returns the names of the dimensions that carried values determine."""
        return frozenset(self._forms)

    def ahead(self, shapes: Shapes, around: Mapping[str, int], most: int) -> IterationsAhead | None:
        """Returns at most ``most`` iterations, of which the first takes ``shapes`` and all are legal; None where none
        is known.

        No carried dimension is 0 in them, and none is much larger than in the first.
        """
        key = shapes, tuple(around.items()), most
        if key not in self._retained:
            keep(self._retained, key, self._ahead(shapes, around, most))
        return self._retained[key]

    def _ahead(self, first: Shapes, around: Mapping[str, int], most: int) -> IterationsAhead | None:
        if [len(shape) for shape in first] != self._ranks:
            return None
        begin = [extent for shape in first for extent in shape]
        units = self._units(begin, around, most)
        if units is None:
            return None
        count = min((_soon(each) for each in units.values()), default=most)
        units = {name: each[:count] for name, each in units.items()}
        values: dict[str, int | NDArray[np.int64]] = dict(around)
        values |= {name: each.symbol.unit * np.array(units[name], np.int64) for name, each in self._forms.items()}
        try:
            extent_values = self._formulas.at_each(values, count)
        except (KeyError, OverflowError):  # sizes that a guard or an output of an iteration has, or no tensor
            return None
        taken, given, found, legal = np.split(extent_values, self._columns, axis=1)
        shapes = np.concatenate((np.array([begin], np.int64), given))
        fits = (taken == shapes[:-1]).all(axis=1) & (found == legal).all(axis=1)
        count = count if fits.all() else int(fits.argmin())
        if not count:
            return None
        values = {name: value if isinstance(value, int) else value[:count] for name, value in values.items()}
        shapes = shapes[: count + 1]
        most_elements = [shapes[1:, a:b].prod(axis=1, dtype=np.float64).max() for a, b in pairwise(self._ends)]
        nbytes = [int(elements) * item for elements, item in zip(most_elements, self._items, strict=True)]
        now = [prod(shape) * item for shape, item in zip(first, self._items, strict=True)]
        return IterationsAhead(count, values, shapes, nbytes, now)

    def shaped(self, extents: Sequence[int]) -> Shapes:
        """Splits ``extents``, axes concatenated, into the shapes of the carried values."""
        return tuple(tuple(extents[begin:end]) for begin, end in pairwise(self._ends))

    def _units(self, first: Sequence[int], around: Mapping[str, int], most: int) -> dict[str, Sequence[int]] | None:
        """Returns the units of each dimension in at most ``most`` iterations, as long as they are legal; None where
        none is.
        """
        now: dict[str, int] = {}
        for name, each in self._forms.items():
            found = each.units(first[each.axis])
            if found is None:
                return None
            now[name] = found
        if self._steps is not None:
            legal = (_legal(each.symbol, now[name], self._steps[name], most) for name, each in self._forms.items())
            count = min(legal, default=most)
            return {
                name: range(begin, begin + count * step, step) if step else [begin] * count
                for (name, begin), step in zip(now.items(), self._steps.values(), strict=True)
            }
        rows = [now]
        after = [self._after[each.axis] for each in self._forms.values()]
        while len(rows) < most:
            values = dict(around) | {name: units * self._forms[name].symbol.unit for name, units in rows[-1].items()}
            try:
                extents = all_at(after, values)
            except (KeyError, ZeroDivisionError):
                break
            units = {
                name: each.units(extent) for (name, each), extent in zip(self._forms.items(), extents, strict=True)
            }
            if None in units.values():
                break
            rows.append({name: number for name, number in units.items() if number is not None})
        return {name: [row[name] for row in rows] for name in now}


def keep(answers: dict[_Key, _Answer], key: _Key, answer: _Answer) -> None:
    """Adds ``answer`` to the bounded cache ``answers``, and removes the oldest where there are too many."""
    answers[key] = answer
    if len(answers) > _RETAINED:
        del answers[next(iter(answers))]


def _soon(units: Sequence[int]) -> int:
    """Returns after how many iterations a dimension of these ``units`` is much larger than in the first: all get
    memory.
    """
    most = max(2 * units[0], units[0] + _GROWS)
    return next((iteration for iteration, each in enumerate(units) if each > most), len(units))


def _legal(symbol: Symbol, begin: int, step: int, most: int) -> int:
    """Returns in how many of ``most`` iterations ``symbol`` is legal, with ``begin`` units in the first and ``step``
    more in each.
    """
    if step > 0 and symbol.high is not None:
        return min(most, (symbol.high - begin) // step + 1)
    if step < 0:
        return min(most, (begin - max(symbol.low, 1)) // -step + 1)
    return most


def is_fixed(spec: TensorSpec, names: frozenset[str]) -> bool:
    """Returns whether ``spec`` has one shape for all values of the dimensions ``names``."""
    return not any(isinstance(extent, Size) and names & extent.symbols.keys() for extent in spec.shape)
