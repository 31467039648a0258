"""Resizing: a program that was bound for one choice of sizes turns to others, where all that runs it is the host.

Of its words only those change that depend on sizes, and of its slots what fits them; addresses of weights and of code
stay. What there is for each size is an array of numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from landbridge.dtypes import dtype
from landbridge.executable.executable import Executable
from landbridge.executable.instance import Numbers, choose_legal, dimensions, spec_at
from landbridge.executable.open_number import OpenNumber
from landbridge.executable.parts import CodeImage, TensorSpec
from landbridge.records import record
from landbridge.sizes.size import Size
from landbridge.vm.bound_program import BoundProgram
from landbridge.vm.extent_check import ExtentCheck
from landbridge.vm.frame import Frame
from landbridge.vm.interpreter import run_steps
from landbridge.vm.open_steps import may_be_others, number_at, steps_at
from landbridge.vm.program import NativeStep, Step

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORD = (1 << 64) - 1

Places = tuple[tuple[int, int], ...]


@record(slots=True, eq=False)
class SizeFit:
    """What a program is for one choice of its sizes.

    ``numbers``: of its extents, by slot, then the bytes of each input and output, and 0. ``specs``: what fits each of
    these, and ``places`` theirs, ``nbytes`` their bytes. ``threads``: on how many it runs. Made at the first turn:
    ``values``, each that its words have, once, and ``steps``, where more is to do than one call. Many are kept: what
    is alike in all of them is there once.
    """

    numbers: NDArray[np.int64]
    specs: tuple[TensorSpec, ...]
    places: tuple[Places, ...]
    nbytes: list[int]
    threads: int
    values: NDArray[np.uint64] | None = None
    steps: tuple[Step, ...] | None = None


def may_be_resized(executable: Executable) -> bool:
    """Whether all code of ``executable`` is the host's."""
    return all(isinstance(module.image, CodeImage) for module in executable.modules)


class Resizing:
    """Turns ``bound`` to other sizes: that was bound where ``numbers`` were those of one choice, and remembered.

    ``executable`` is the open program, ``storages`` the bytes that each of its storages has.
    """

    def __init__(self, bound: BoundProgram, executable: Executable, numbers: Numbers, storages: Sequence[int]) -> None:
        self._bound, self._main, self._numbers = bound, executable.main, numbers
        self._dimensions = dimensions(executable.main)
        program = bound.program
        io = (*self._main.inputs, *self._main.outputs)
        #: Those that fit all sizes.
        self._fixed = [None if _is_open(spec) else spec_at(spec, numbers) for spec in io]
        self._items = [dtype(spec.dtype).itemsize for spec in io]
        self._places = program.places[: len(io)]
        self._moves = [any(type(offset) is OpenNumber for _, offset in each) for each in self._places]
        self._runner = cache(bound.runner)
        self._words = np.array([word for word, _ in program.open_words], np.intp)
        # Many words have the same number: strides and extents that kernels share.
        places = {(number.slots, number.more): 0 for _, number in program.open_words}
        places = {each: place for place, each in enumerate(places)}
        #: Of each word, which of the values it has.
        self._value_of = np.array([places[n.slots, n.more] for _, n in program.open_words], np.intp)
        most = max((len(slots) for slots, _ in places), default=1)
        #: Of each value the slots that it sums, the last of all numbers, a zero, where it has fewer.
        self._terms = [
            np.array([slots[k] if k < len(slots) else -1 for slots, _ in places], np.intp) for k in range(most)
        ]
        self._more = np.array([more & _WORD for _, more in places], np.uint64)
        self._check = ExtentCheck(executable, numbers, storages)

    @staticmethod
    def takes(bound: BoundProgram) -> bool:
        """Whether ``bound`` can be turned: code uses its memory in place, none of it rows, and nothing that was
        prepared is for one size."""
        program = bound.program
        in_place = all(home.is_direct and home.kind.ndim == 1 for home in bound.memory.homes)
        sums = all(slot >= 0 for _, number in program.open_words for slot in number.slots)
        return in_place and sums and not program.prepares_open and may_be_others(program.steps)

    def fit(self, values: Mapping[str, int]) -> SizeFit | None:
        """What the program is where its dimensions have ``values``, by name; None where its memory is too small.

        Raises ShapeError as ``instance`` does.
        """
        numbers = self._numbers
        choose_legal(self._main, self._dimensions, values, numbers)
        io = (*self._main.inputs, *self._main.outputs)
        specs = tuple(
            spec_at(spec, numbers) if known is None else known for spec, known in zip(io, self._fixed, strict=True)
        )
        nbytes = [
            spec.nbytes
            if spec.strides
            else prod(spec.shape) * item  # of legal extents: looked at with all others below
            for spec, item in zip(specs, self._items, strict=True)
        ]
        every = [*numbers.every, *nbytes, 0]
        found = np.array(every, np.int64)
        sizes = self._check.sizes(found, nbytes)
        if sizes is None:
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

    def turn(self, frame: Frame, fit: SizeFit) -> None:
        """Let ``frame``, one of the program's, be for ``fit``, its inputs and outputs bound to nothing."""
        if fit.values is None:
            fit.values = self._values(fit.numbers.view(np.uint64))
        frame.number_words[self._words] = fit.values[self._value_of]
        for slot, spec, size, places in zip(frame.slots, fit.specs, fit.nbytes, fit.places):  # noqa: B905 - parameters stay
            slot.take(spec, size, places)
        if frame.staging is not None:
            frame.staging.clear()
        listed = partial(self._list, frame, fit) if frame.listed is not None else None
        frame.take(self._steps(fit), listed, self._runner(fit.threads))

    def _values(self, numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
        values = self._more.copy()
        for slots in self._terms:
            values += numbers[slots]
        return values

    def _steps(self, fit: SizeFit) -> tuple[Step, ...]:
        steps = self._bound.program.steps
        if len(steps) == 1 and isinstance(steps[0], NativeStep):
            return steps
        if fit.steps is None:
            fit.steps = steps_at(steps, fit.numbers.tolist())
        return fit.steps

    def _list(self, frame: Frame, fit: SizeFit) -> None:
        steps = steps_at(self._bound.program.listed_steps, fit.numbers.tolist())
        run_steps(steps, frame.words, self._runner(fit.threads), frame.bound_to)


def _is_open(spec: TensorSpec) -> bool:
    return any(isinstance(extent, Size) for extent in (*spec.shape, *spec.strides))
