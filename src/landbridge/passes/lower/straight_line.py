"""Value numbers of loads in straight-line code, the unrolled body of a register tile, and the vectors they share.

The body is repeated for each row and column of the tile, and for each unrolled iteration of the innermost loop. Reads
of an access that have one value number are one load (local value numbering; Cocke and Schwartz, "Programming languages
and their compilers", 1970). Which rows and iterations share a load is therefore not stated anywhere: windows that
overlap along the rows have equal numbers where they overlap.

Loads whose numbers follow one another are merged (superword-level parallelism; Larsen and Amarasinghe, 2000): scalars
are lanes of one vector, and vectors with a stride are shuffled from the contiguous vectors that all of them lie in
(interleaved access groups). Nothing is loaded that the block does not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from landbridge.passes.lower.access import ElementAccess, Guard, Linear
from landbridge.records import record


class LoadNumber(NamedTuple):
    """The value number of a load: while no loop index around the block changes, equal numbers read equal values.

    ``offset`` is the distance in elements from what the first row, column and iteration read. If two numbers have the
    same ``access`` and ``group``, the difference of their offsets is their distance in memory, and the same guards hold
    for both. Accesses are compared by identity, because a stage may read an element again after another one has stored
    it.
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

    ``loops`` are the loops along which the body is repeated. ``holds`` returns whether a guard is known to hold in the
    whole block; what is read does not depend on such guards.

    ``memory_scalars``: a scalar for all lanes of ``lane`` is a memory operand of what computes with it, and takes no
    register. Iterations then do not share scalars, which would stay in registers from one to the next.
    """

    def __init__(
        self,
        loops: tuple[Unrolled | None, ...],
        holds: Callable[[Guard], bool],
        lane: int | None = None,
        *,
        memory_scalars: bool = False,
    ) -> None:
        self._loops, self._holds, self._lane, self._memory_scalars = loops, holds, lane, memory_scalars
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
        is_scalar = self._memory_scalars and self._lane is not None and not a.varies(self._lane)
        separate = tuple(
            k
            for k, along in enumerate(loops)
            if along
            and any(
                _is_opaque(x, along.dim) or (is_scalar and along.dim == loop and x.uses(along.dim)) for x in indices
            )
        )
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


@record(frozen=True)
class Picked:
    """The lanes of a load that is picked from contiguous vectors, which other loads share.

    There are ``count`` vectors of ``length``, from the element numbered ``first`` on. ``lanes`` are positions in them:
    one for a scalar, otherwise one for each lane of a vector.
    """

    first: LoadNumber
    count: int
    length: int
    lanes: tuple[int, ...]


def merged_scalars(reads: Iterable[LoadNumber], lanes: int) -> dict[LoadNumber, Picked]:
    """Returns the scalars among ``reads`` that are lanes of vectors of ``lanes``.

    The last vector of a run of contiguous scalars may overlap the one before it. Runs of fewer scalars stay scalars.
    """
    merged: dict[LoadNumber, Picked] = {}
    for run in _runs(reads):
        for at, number in enumerate(run if len(run) >= lanes else ()):
            first = min(at // lanes * lanes, len(run) - lanes)
            merged[number] = Picked(run[first], 1, lanes, (at - first,))
    return merged


def interleaved_vectors(reads: Iterable[LoadNumber], stride: int, lanes: int) -> dict[LoadNumber, Picked]:
    """Returns the vectors among ``reads`` that are interleaved: their lanes are ``stride`` elements apart.

    ``stride`` such vectors, each one element further on than the one before, cover as many contiguous vectors.
    """
    merged: dict[LoadNumber, Picked] = {}
    for run in _runs(reads):
        for at in range(len(run) // stride * stride):
            place = at % stride
            merged[run[at]] = Picked(run[at - place], stride, lanes, tuple(place + stride * i for i in range(lanes)))
    return merged


@record(frozen=True)
class TransposedRow:
    """A vector along the lanes, one of ``count`` that follow one another from ``first`` on in memory.

    A vector is loaded along them for each lane, and these are transposed.
    """

    first: LoadNumber
    count: int


def transposed_rows(reads: Iterable[LoadNumber]) -> dict[LoadNumber, TransposedRow]:
    """Returns the vectors ``reads``, whose numbers follow one another, as rows of transposed blocks."""
    return {number: TransposedRow(run[0], len(run)) for run in _runs(reads) for number in run}


def _runs(reads: Iterable[LoadNumber]) -> Iterator[list[LoadNumber]]:
    """Yields ``reads`` in runs of contiguous elements, each of one access and group and as long as possible."""
    groups: dict[tuple[ElementAccess, tuple[object, ...]], set[int]] = {}
    for a, group, offset in reads:
        groups.setdefault((a, group), set()).add(offset)
    for (a, group), offsets in groups.items():
        run: list[LoadNumber] = []
        for offset in sorted(offsets):
            if run and offset != run[-1].offset + 1:
                yield run
                run = []
            run.append(LoadNumber(a, group, offset))
        yield run


def _is_opaque(x: Linear, dim: int) -> bool:
    """Returns whether ``x`` moves along loop ``dim`` by a distance that is not the same number everywhere."""
    return x.nonlinear_in(dim) or not isinstance(x.coeff(dim), int)
