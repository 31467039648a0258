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
from landbridge.vm.extent_check import ExtentCheck, padded_slots
from landbridge.vm.frame import Frame
from landbridge.vm.interpreter import run_steps
from landbridge.vm.open_steps import may_be_others, number_at, steps_at
from landbridge.vm.open_words import OpenWords
from landbridge.vm.program import NativeStep, Step

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
        places = self._places
        if any(self._moves):
            places = tuple(
                tuple((word, number_at(offset, every)) for word, offset in each) if moves else each
                for each, moves in zip(places, self._moves, strict=True)
            )
        return SizeFit(found, specs, places, nbytes, threads)

    def resize(self, frame: Frame, fit: SizeFit) -> None:
        """Resize ``frame``, one of the program's, to ``fit``, with nothing bound to its inputs and outputs."""
        if fit.values is None:
            fit.values = self._open.values(fit.extent_values)
        frame.number_words[self._open.words] = fit.values[self._open.value_of]
        for slot, spec, size, places in zip(frame.slots, fit.specs, fit.nbytes, fit.places):  # noqa: B905 - parameters stay
            slot.take(spec, size, places)
        if frame.staging is not None:
            frame.staging.clear()
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
        if self._formulas is None:
            self._formulas = SizeFormulas([*self._extent_values.extents, 0])
        try:
            extent_values = self._formulas.at_each(values, count)
        except OverflowError:
            return FitsAhead(np.zeros((0, len(self._extent_values.every) + 1), np.int64), 0, 1)
        io = extent_values[:, self._io_shapes].prod(axis=2, dtype=np.float64) * self._items
        sizes, fits = self._check.sizes(extent_values, io)
        count = count if fits.all() else int(fits.argmin())
        threads = self._bound.most_threads
        if count and threads > 1 and not self._check.is_worth_sharing(extent_values[count - 1], sizes[count - 1]):
            threads = 1
        return FitsAhead(extent_values[:count], count, threads)

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


def _is_native(steps: Sequence[Step]) -> bool:
    """Returns whether ``steps`` are one native call, the same for all sizes."""
    return len(steps) == 1 and isinstance(steps[0], NativeStep)


def _is_open(spec: TensorSpec) -> bool:
    return any(isinstance(extent, Size) for extent in (*spec.shape, *spec.strides))
