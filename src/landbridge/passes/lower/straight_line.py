"""Value numbers of loads in straight-line code, the unrolled body of a register tile.

The body is repeated for each row and column of the tile, and for each unrolled iteration of the innermost loop. Reads
of an access that have one value number are one load (local value numbering; Cocke and Schwartz, "Programming languages
and their compilers", 1970). Which rows and iterations share a load is therefore not stated anywhere: windows that
overlap along the rows have equal numbers where they overlap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from landbridge.passes.lower.access import ElementAccess, Guard, Linear
from landbridge.records import record


class LoadNumber(NamedTuple):
    """The value number of a load: while no loop index around the block changes, equal numbers read equal values.

    ``offset`` is the distance in elements from what the first row, column and iteration read. Two numbers whose
    ``access`` and ``group`` are equal are ``offset`` apart in memory, and the same guards hold for both. Accesses
    are compared by identity, because a stage may read an element again after another one has stored it.
    """

    access: ElementAccess
    group: tuple[object, ...]
    offset: int


@record(frozen=True)
class Unrolled:
    """A loop of which a block has several iterations: ``step`` iterations lie between two copies of the body."""

    dim: int
    step: int = 1


class LoadNumbers:
    """Numbers the loads of one block.

    ``loops`` are the loops along which the body is repeated. What is read does not depend on the guards for which
    ``holds`` is true, in the whole block.
    """

    def __init__(self, loops: tuple[Unrolled | None, ...], holds: Callable[[Guard], bool]) -> None:
        self._loops, self._holds = loops, holds
        self._forms: dict[tuple[ElementAccess, int | None], _Form] = {}

    def number(self, a: ElementAccess, copy: tuple[int, ...], shift: tuple[int, int] | None) -> LoadNumber:
        """Returns the number of what ``a`` reads in a copy of the body.

        ``copy`` counts the copies along each of ``loops``. ``shift``: another loop, and how many of its iterations lie
        before those of this copy.
        """
        loop, by = (None, 0) if shift is None else shift
        form = self._forms.get((a, loop))
        if form is None:
            form = self._forms[a, loop] = self._form(a, loop)
        at = (*copy, by)
        offset, *tests = [sum(map(int.__mul__, steps, at)) for steps in form.steps]
        return LoadNumber(a, (*tests, *[at[k] for k in form.separate]), offset)

    def _form(self, a: ElementAccess, loop: int | None) -> _Form:
        indices = [a.index, *(g.index for g in a.guards if not self._holds(g))]
        loops = [*self._loops, None if loop is None else Unrolled(loop)]
        separate = tuple(k for k, along in enumerate(loops) if along and any(_is_opaque(x, along.dim) for x in indices))
        steps = tuple(
            tuple(
                0 if along is None or k in separate else x.coeff(along.dim) * along.step
                for k, along in enumerate(loops)
            )
            for x in indices
        )
        return _Form(steps, separate)


@record(frozen=True)
class _Form:
    """How an access moves: the distance from copy to copy along each loop, of its index and of the indices that its
    guards test. Copies along the loops ``separate`` have no known distance.
    """

    steps: tuple[tuple[int, ...], ...]
    separate: tuple[int, ...]


def _is_opaque(x: Linear, dim: int) -> bool:
    """Returns whether ``x`` moves along loop ``dim`` by a distance that is not the same number everywhere."""
    return x.nonlinear_in(dim) or not isinstance(x.coeff(dim), int)
