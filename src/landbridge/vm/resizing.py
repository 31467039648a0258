"""Resizing: rebinds a program that was bound for one choice of sizes to others, where only the host or one device
runs it.

Only words that depend on sizes change, and what fits the slots; addresses of weights and of code stay. Each choice of
sizes needs just an array of numbers, and on a device its launches.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from landbridge.dtypes import dtype
from landbridge.executable.executable import Executable
from landbridge.executable.instance import ExtentValues, choose_legal, dimensions, instance, spec_at
from landbridge.executable.parts import CodeImage
from landbridge.memory import ledger
from landbridge.memory.extents import limits_pieces
from landbridge.sizes.formulas import SizeFormulas
from landbridge.vm.bound_program import BoundProgram
from landbridge.vm.extent_check import Bytes, ExtentCheck, padded_slots
from landbridge.vm.frame import Frame
from landbridge.vm.interpreter import run_steps
from landbridge.vm.open_kernels import OpenKernels, runs_on_devices
from landbridge.vm.open_kernels import may_be_others as may_kernels_be_others
from landbridge.vm.open_steps import may_be_others, steps_at
from landbridge.vm.open_words import OpenWords
from landbridge.vm.program import NativeStep, Step
from landbridge.vm.size_fit import FitsAhead, OpenSlots, SizeFit, is_open
from landbridge.vm.slot import Slot

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Above all sizes.
_MOST = (1 << 63) - 1


def may_be_resized(executable: Executable) -> bool:
    """Returns whether all code of ``executable`` runs on the host, or all on devices."""
    return len({isinstance(module.image, CodeImage) for module in executable.modules}) <= 1


class Resizing:
    """Rebinds ``bound``, which was bound for ``extent_values`` of one choice of sizes, to other sizes.

    ``executable`` is the open program, ``storages`` the bytes of each of its storages.
    """

    def __init__(
        self, bound: BoundProgram, executable: Executable, extent_values: ExtentValues, storages: Sequence[int]
    ) -> None:
        self._bound, self._executable, self._main, self._extent_values = (
            bound,
            executable,
            executable.main,
            extent_values,
        )
        self._dimensions = dimensions(executable.main)
        program = bound.program
        io = (*self._main.inputs, *self._main.outputs)
        fixed = [None if is_open(spec) else spec_at(spec, extent_values) for spec in io]
        self._slots = OpenSlots(io, program.places[: len(io)], fixed, extent_values)
        self._items = np.array([dtype(spec.dtype).itemsize for spec in io], np.float64)
        self._runner = cache(bound.runner)
        self._open = OpenWords(program.open_words)
        self._check = ExtentCheck(executable, extent_values, storages)
        self._formulas: SizeFormulas | None = None
        self._kernels: OpenKernels | None = None
        if runs_on_devices(program.steps):
            self._kernels = OpenKernels(program.steps, extent_values, bound.memory)
        self._io_shapes = padded_slots([spec.shape for spec in io], extent_values)

    @staticmethod
    def takes(bound: BoundProgram) -> bool:
        """Returns whether ``bound`` can be resized.

        It can where code uses its memory in place, none of it is in rows, and nothing that was prepared is for one
        size; of devices, only one does.
        """
        program, bindings = bound.program, bound.memory.bindings
        if program.prepares_open or any(binding.kind.ndim > 1 for binding in bindings):
            return False
        if runs_on_devices(program.steps):
            return may_kernels_be_others(program.steps) and not any(limits_pieces(each.kind) for each in bindings)
        sums = all(slot >= 0 for _, number in program.open_words for slot in number.slots)
        return sums and all(binding.is_direct for binding in bindings) and may_be_others(program.steps)

    def sizes_of(self, values: Sequence[int]) -> dict[str, int]:
        """Returns ``values``, of all open dimensions in order, by the names of these."""
        return dict(zip(self._dimensions, values, strict=True))

    def fit(self, values: Mapping[str, int]) -> SizeFit | None:
        """Returns the state of the program where dimensions have ``values``, by name; None where its memory is too
        small.

        Raises ShapeError as ``instance`` does, and OutOfMemoryError where the machine has not the memory, or the
        Session's limit does not allow it.
        """
        extent_values = self._extent_values
        choose_legal(self._main, self._dimensions, values, extent_values)
        slots, every = self._slots, extent_values.every
        specs = slots.specs_at(every)
        found = np.array([*every, 0], np.int64)
        nbytes = found[self._io_shapes].prod(axis=1, dtype=np.float64) * self._items
        for number in slots.strided:
            nbytes[number] = specs[number].nbytes
        sizes, fits = self._check.sizes(found, nbytes)
        if not fits or not (self._kernels is None or self._kernels.fits(found)):
            return None
        if self._activations(sizes) > self._bound.memory_check.allowed:
            self._bound.memory_check.check(instance(self._executable, values))
        threads = int(self._threads(found, sizes))
        fit = SizeFit(found, specs, slots.places_at(found), nbytes.astype(np.int64).tolist(), threads)
        if self._kernels is not None:  # which may copy words to the device: not in a run
            self._steps(fit)
        return fit

    def fits(
        self,
        values: Mapping[str, int | NDArray[np.int64]],
        count: int,
        inputs: NDArray[np.int64] | None = None,
    ) -> FitsAhead | None:
        """Returns what ``fit`` does for the first of ``count`` choices of dimensions: those before the first that is
        illegal, or too large for the memory, or where an input has another shape; None where that is the first.

        ``values``: those of the dimensions by name, one for all choices or ``count``. ``inputs``: the shapes that are
        expected, a row for each choice with a row for each input, padded with 1 to one rank; None: any. Inputs and
        outputs with strides are computed one by one: None.
        """
        rows = None if self._slots.strided else self._rows(values, count)
        if rows is None:
            return None
        shapes = rows[:, self._io_shapes]
        nbytes = shapes.prod(axis=2, dtype=np.float64) * self._items
        sizes, legal = self._check.sizes(rows, nbytes)
        for name, symbol in self._dimensions.items():
            units, left = np.divmod(values[name], symbol.unit)
            legal &= (left == 0) & (units >= symbol.low) & (units <= (_MOST if symbol.high is None else symbol.high))
        slot = self._extent_values.slot
        for guard in self._main.guards:
            legal &= rows[:, slot(guard.found)] == rows[:, slot(guard.legal)]
        if inputs is not None:
            legal &= (shapes[:, : inputs.shape[1], : inputs.shape[2]] == inputs).all(axis=(1, 2))
        legal &= self._activations(sizes) <= self._bound.memory_check.allowed
        if self._kernels is not None:
            legal &= self._kernels.fits(rows)
        if not legal[0]:
            return None
        first = slice(None if legal.all() else int(legal.argmin()))
        threads = self._threads(rows[first], sizes[first]).tolist()
        return FitsAhead(rows[first], threads, self._slots, shapes[first], nbytes[first].astype(np.int64), self._open)

    def _threads(self, extent_values: NDArray[np.int64], sizes: Bytes) -> NDArray[np.int64]:
        """Returns the number of threads at one choice of sizes, or at each of several."""
        most = self._bound.most_threads if self._kernels is None else 1
        if most == 1:
            return np.ones(extent_values.shape[:-1], np.int64)
        return np.where(self._check.is_worth_sharing(extent_values, sizes), most, 1)

    def _activations(self, sizes: Bytes) -> NDArray[np.float64]:
        """Returns the bytes of storages on the host at one choice of sizes, or at each of several."""
        return self._check.storage_bytes(sizes, self._bound.memory_check.on_host)

    def changes(self, frame: Frame, fit: SizeFit) -> set[Slot]:
        """Returns the inputs and outputs of ``frame``, one of the program's, that ``resize`` to ``fit`` unbinds: those
        of another shape or at other words, and all where arguments may be staged.
        """
        each = zip(frame.slots, fit.specs, fit.places)  # noqa: B905 - without the parameters
        if frame.staging is not None:
            return {slot for slot, _, _ in each}
        return {
            slot
            for slot, spec, places in each  # shapes first: to compare specs takes longer
            if slot.shape != spec.shape or slot.spec != spec or slot.places != places
        }

    def resize(self, frame: Frame, fit: SizeFit, changed: Collection[Slot]) -> None:
        """Resize ``frame``, one of the program's, to ``fit``, with nothing bound to ``changed``, its ``changes``."""
        for slot, spec, size, places in zip(frame.slots, fit.specs, fit.nbytes, fit.places):  # noqa: B905 - parameters stay
            if slot in changed:
                slot.take(spec, size, places)
            else:  # of plain numbers, where the program was bound with OpenNumbers
                slot.spec, slot.shape = spec, spec.shape
        if frame.staging is not None:
            frame.staging.clear()
        self.set_words(frame, fit)

    def set_words(self, frame: Frame, fit: SizeFit, before: SizeFit | None = None) -> None:
        """Resize ``frame`` to ``fit`` from the state ``before`` (None: any), which has the same inputs and outputs, and
        leave bound to them what is.
        """
        if fit.values is None:
            fit.values = self._open.values(fit.extent_values)
        words, value_of = self._open.words, self._open.value_of
        if before is not None and fit.ahead is not None and fit.ahead is before.ahead:
            words, value_of = fit.ahead.changing
        frame.number_words[words] = fit.values[value_of]
        listed = partial(self._list, frame, fit) if frame.listed is not None else None
        frame.take(self._steps(fit), listed, self._runner(fit.threads))

    @property
    def width(self) -> int:
        """Returns how many numbers one choice of sizes takes to compute."""
        return self._check.width + len(self._extent_values.every)

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
        run_native, is_reported = self._runner(fits.threads[choice]), ledger.is_active() and bool(listed)
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
            fit.steps = self._steps_at(steps, fit)
        return fit.steps

    def _steps_at(self, steps: Sequence[Step], fit: SizeFit) -> tuple[Step, ...]:
        if self._kernels is None:
            return steps_at(steps, fit.extent_values.tolist())
        if fit.kernel_steps is None:
            fit.kernel_steps = {}
        return self._kernels.steps_at(steps, fit.extent_values, fit.kernel_steps)

    def _list(self, frame: Frame, fit: SizeFit) -> None:
        steps = self._steps_at(self._bound.program.listed_steps, fit)
        run_steps(steps, frame.words, self._runner(fit.threads), frame.bound_to)


def _is_native(steps: Sequence[Step]) -> bool:
    """Returns whether ``steps`` are one native call, the same for all sizes."""
    return len(steps) == 1 and isinstance(steps[0], NativeStep)
