"""Resizing: rebinds a program that was bound for one choice of sizes to others, where only the host runs it.

Only words that depend on sizes change, and what fits the slots; addresses of weights and of code stay. Each choice of
sizes needs just an array of numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from landbridge.dtypes import dtype
from landbridge.executable.executable import Executable
from landbridge.executable.instance import ExtentValues, choose_legal, dimensions, spec_at
from landbridge.executable.open_number import OpenNumber
from landbridge.executable.parts import CodeImage, TensorSpec
from landbridge.memory import ledger
from landbridge.records import record
from landbridge.sizes.formulas import SizeFormulas
from landbridge.sizes.size import Size
from landbridge.vm.bound_program import BoundProgram
from landbridge.vm.extent_check import Bytes, ExtentCheck, padded_slots
from landbridge.vm.frame import Frame
from landbridge.vm.interpreter import run_steps
from landbridge.vm.open_steps import may_be_others, number_at, steps_at
from landbridge.vm.open_words import OpenWords
from landbridge.vm.program import NativeStep, Step

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Above all sizes.
_MOST = (1 << 63) - 1

Places = tuple[tuple[int, int], ...]


@record(slots=True, eq=False)
class SizeFit:
    """The state of a program at one choice of its sizes.

    ``extent_values``: the values of its extents, by slot, then the bytes of each input and output, and 0. ``specs``:
    what fits each input and output; ``places`` are their words, ``nbytes`` their bytes. ``threads``: the number of
    threads it runs on. Made at the first resize: ``values``, each value of its words once, and ``steps``, where it does
    more than one call. Many are retained, so what is the same in all of them exists once.
    """

    extent_values: NDArray[np.int64]
    specs: tuple[TensorSpec, ...]
    places: tuple[Places, ...]
    nbytes: list[int]
    threads: int
    values: NDArray[np.uint64] | None = None
    steps: tuple[Step, ...] | None = None

    def has_io_of(self, other: SizeFit) -> bool:
        """Returns whether what fits the inputs and outputs of ``other`` fits here, at the same words."""
        return self.specs == other.specs and self.places == other.places


@record(frozen=True, slots=True, eq=False)
class FitsAhead:
    """``count`` choices of sizes, the first of those requested, for which the program has enough memory.

    ``extent_values``: the values of its extents, by slot, then 0, one row for each choice. ``threads``: the number of
    threads.
    """

    extent_values: NDArray[np.int64]
    count: int
    threads: int


def may_be_resized(executable: Executable) -> bool:
    """Returns whether all code of ``executable`` runs on the host."""
    return all(isinstance(module.image, CodeImage) for module in executable.modules)


class Resizing:
    """Rebinds ``bound``, which was bound for ``extent_values`` of one choice of sizes, to other sizes.

    ``executable`` is the open program, ``storages`` the bytes of each of its storages.
    """

    def __init__(
        self, bound: BoundProgram, executable: Executable, extent_values: ExtentValues, storages: Sequence[int]
    ) -> None:
        self._bound, self._main, self._extent_values = bound, executable.main, extent_values
        self._dimensions = dimensions(executable.main)
        program = bound.program
        io = (*self._main.inputs, *self._main.outputs)
        #: The steps that fit all sizes.
        self._fixed = [None if _is_open(spec) else spec_at(spec, extent_values) for spec in io]
        self._items = [dtype(spec.dtype).itemsize for spec in io]
        self._places = program.places[: len(io)]
        self._moves = [any(type(offset) is OpenNumber for _, offset in each) for each in self._places]
        self._runner = cache(bound.runner)
        self._open = OpenWords(program.open_words)
        self._check = ExtentCheck(executable, extent_values, storages)
        self._formulas: SizeFormulas | None = None
        self._io_shapes = padded_slots([spec.shape for spec in io], extent_values)

    @staticmethod
    def takes(bound: BoundProgram) -> bool:
        """Returns whether ``bound`` can be resized.

        It can where code uses its memory in place, none of it is in rows, and nothing that was prepared is for one
        size.
        """
        program = bound.program
        in_place = all(binding.is_direct and binding.kind.ndim == 1 for binding in bound.memory.bindings)
        sums = all(slot >= 0 for _, number in program.open_words for slot in number.slots)
        return in_place and sums and not program.prepares_open and may_be_others(program.steps)

    def fit(self, values: Mapping[str, int]) -> SizeFit | None:
        """Returns the state of the program where dimensions have ``values``, by name; None where its memory is too
        small.

        Raises ShapeError as ``instance`` does.
        """
        extent_values = self._extent_values
        choose_legal(self._main, self._dimensions, values, extent_values)
        io = (*self._main.inputs, *self._main.outputs)
        specs = tuple(
            spec_at(spec, extent_values) if known is None else known
            for spec, known in zip(io, self._fixed, strict=True)
        )
        nbytes = [
            spec.nbytes if spec.strides else prod(spec.shape) * item  # of legal extents: checked with all others below
            for spec, item in zip(specs, self._items, strict=True)
        ]
        every = [*extent_values.every, *nbytes, 0]
        found = np.array(every, np.int64)
        sizes, fits = self._check.sizes(found, nbytes)
        if not fits:
            return None
        threads = self._bound.most_threads
        if threads > 1 and not self._check.is_worth_sharing(found, sizes):
            threads = 1
        places = self._places_at(every) if any(self._moves) else self._places
        return SizeFit(found, specs, places, nbytes, threads)

    def fits_along(
        self,
        values: Mapping[str, NDArray[np.int64]],
        inputs: Sequence[tuple[tuple[int, ...], tuple[int, ...] | None]],
    ) -> list[SizeFit]:
        """Returns what ``fit`` does for the first of several choices of dimensions, whose ``values`` are by name: those
        before the first that is illegal, or too large for the memory, or where an input has another shape.

        ``inputs``: for each input its shape at the choice before the first, and how much that changes from choice to
        choice (None: not at all). Nothing is returned where inputs or outputs have strides.
        """
        io = (*self._main.inputs, *self._main.outputs)
        count = len(next(iter(values.values()), ()))
        if not count or any(spec.strides for spec in io):
            return []
        rows = self._rows(values, count)
        if rows is None:
            return []
        shapes = rows[:, self._io_shapes]
        nbytes = shapes.prod(axis=2, dtype=np.float64) * self._items
        sizes, legal = self._check.sizes(rows, nbytes)
        for name, symbol in self._dimensions.items():
            units, left = np.divmod(values[name], symbol.unit)
            legal &= (left == 0) & (units >= symbol.low) & (units <= (_MOST if symbol.high is None else symbol.high))
        for guard in self._main.guards:
            legal &= rows[:, self._extent_values.slot(guard.found)] == rows[:, self._extent_values.slot(guard.legal)]
        legal &= (shapes[:, : len(inputs)] == _advanced(inputs, count, shapes.shape[2])).all(axis=(1, 2))
        count = count if legal.all() else int(legal.argmin())
        return self._each_fit(rows[:count], shapes, nbytes.astype(np.int64), sizes)

    def _each_fit(
        self, rows: NDArray[np.int64], shapes: NDArray[np.int64], nbytes: NDArray[np.int64], sizes: Bytes
    ) -> list[SizeFit]:
        """Returns the SizeFit of each of ``rows``; specs that are the same in all of them exist once."""
        count, every = len(rows), np.concatenate([rows[:, :-1], nbytes[: len(rows)], rows[:, -1:]], axis=1)
        specs: list[Sequence[TensorSpec]] = []
        for number, spec in enumerate((*self._main.inputs, *self._main.outputs)):
            found = shapes[:count, number, : len(spec.shape)]
            varies = bool(count and (found != found[0]).any())
            at = [
                TensorSpec(spec.name, tuple(shape), spec.dtype, (), spec.vdevice)
                for shape in found[: count if varies else 1].tolist()
            ]
            specs.append(at if varies else at * count)
        most, moves = self._bound.most_threads, any(self._moves)
        fits = []
        of_rows = every, self._open.values(every), zip(*specs, strict=True), sizes, nbytes.tolist()
        for row, words, each, size, bytes_of in zip(*of_rows, strict=False):
            threads = most if most == 1 or self._check.is_worth_sharing(row, size) else 1
            places = self._places_at(row.tolist()) if moves else self._places
            fits.append(SizeFit(row, each, places, bytes_of, threads, words))
        return fits

    def _places_at(self, every: Sequence[int]) -> tuple[Places, ...]:
        """Returns the words of each input and output where extents have the values of ``every``."""
        return tuple(
            tuple((word, number_at(offset, every)) for word, offset in each) if moves else each
            for each, moves in zip(self._places, self._moves, strict=True)
        )

    def resize(self, frame: Frame, fit: SizeFit) -> None:
        """Resize ``frame``, one of the program's, to ``fit``, with nothing bound to its inputs and outputs."""
        for slot, spec, size, places in zip(frame.slots, fit.specs, fit.nbytes, fit.places):  # noqa: B905 - parameters stay
            slot.take(spec, size, places)
        if frame.staging is not None:
            frame.staging.clear()
        self.set_words(frame, fit)

    def set_words(self, frame: Frame, fit: SizeFit) -> None:
        """Resize ``frame`` from a state with the same inputs and outputs to ``fit``; what is bound to them stays."""
        if fit.values is None:
            fit.values = self._open.values(fit.extent_values)
        frame.number_words[self._open.words] = fit.values[self._open.value_of]
        listed = partial(self._list, frame, fit) if frame.listed is not None else None
        frame.take(self._steps(fit), listed, self._runner(fit.threads))

    @property
    def width(self) -> int:
        """Returns how many numbers one choice of sizes takes to compute."""
        return self._check.width + len(self._extent_values.every)

    def fit_ahead(self, values: Mapping[str, int | NDArray[np.int64]], count: int) -> FitsAhead:
        """Returns the states for ``count`` choices of dimensions; ``values`` has one value for all of them, or
        ``count``.

        What ``choose_legal`` checks holds for all of them. No input or output has strides.
        """
        extent_values = self._rows(values, count)
        if extent_values is None:
            return FitsAhead(np.zeros((0, len(self._extent_values.every) + 1), np.int64), 0, 1)
        io = extent_values[:, self._io_shapes].prod(axis=2, dtype=np.float64) * self._items
        sizes, fits = self._check.sizes(extent_values, io)
        count = count if fits.all() else int(fits.argmin())
        threads = self._bound.most_threads
        if count and threads > 1 and not self._check.is_worth_sharing(extent_values[count - 1], sizes[count - 1]):
            threads = 1
        return FitsAhead(extent_values[:count], count, threads)

    def _rows(self, values: Mapping[str, int | NDArray[np.int64]], count: int) -> NDArray[np.int64] | None:
        """Returns the values of all extents by slot, then 0, a row for each of ``count`` choices; None where 64 bits
        may be too few.
        """
        if self._formulas is None:
            self._formulas = SizeFormulas([*self._extent_values.extents, 0])
        try:
            return self._formulas.at_each(values, count)
        except OverflowError:
            return None

    def take_steps(self, frame: Frame, fits: FitsAhead, choice: int) -> None:
        """Set ``frame`` to the steps of choice ``choice`` of ``fits``."""
        steps, listed = self._bound.program.steps, self._bound.program.listed_steps
        run_native, is_reported = self._runner(fits.threads), ledger.is_active() and bool(listed)
        extent_values = [] if _is_native(steps) and not is_reported else fits.extent_values[choice].tolist()
        execute = (
            partial(run_steps, steps_at(listed, extent_values), frame.words, run_native, frame.bound_to)
            if is_reported
            else None
        )
        frame.take(steps if _is_native(steps) else steps_at(steps, extent_values), execute, run_native)

    def _steps(self, fit: SizeFit) -> tuple[Step, ...]:
        steps = self._bound.program.steps
        if _is_native(steps):
            return steps
        if fit.steps is None:
            fit.steps = steps_at(steps, fit.extent_values.tolist())
        return fit.steps

    def _list(self, frame: Frame, fit: SizeFit) -> None:
        steps = steps_at(self._bound.program.listed_steps, fit.extent_values.tolist())
        run_steps(steps, frame.words, self._runner(fit.threads), frame.bound_to)


def _advanced(
    inputs: Sequence[tuple[tuple[int, ...], tuple[int, ...] | None]], count: int, rank: int
) -> NDArray[np.int64]:
    """Returns the shapes of ``inputs`` at each of ``count`` choices, padded with 1 to ``rank`` axes; see
    ``Resizing.fits_along``.
    """
    first = np.array([[*shape, *[1] * (rank - len(shape))] for shape, _ in inputs], np.int64).reshape(-1, rank)
    more = np.array([[*(more or ()), *[0] * (rank - len(more or ()))] for _, more in inputs], np.int64).reshape(
        -1, rank
    )
    return first + np.arange(1, count + 1)[:, None, None] * more


def _is_native(steps: Sequence[Step]) -> bool:
    """Returns whether ``steps`` are one native call, the same for all sizes."""
    return len(steps) == 1 and isinstance(steps[0], NativeStep)


def _is_open(spec: TensorSpec) -> bool:
    return any(isinstance(extent, Size) for extent in (*spec.shape, *spec.strides))
