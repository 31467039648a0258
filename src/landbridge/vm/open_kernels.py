"""Open kernels: launches of a program bound for one choice of sizes, computed for other sizes.

Code and planned memory stay. The words of Calls, the numbers of workgroups and the bytes of operands are computed
again: each is a value of the program's extents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from landbridge.device.api import Region
from landbridge.executable.device_image import word_name
from landbridge.executable.instance import ExtentValues
from landbridge.executable.open_number import OpenNumber
from landbridge.sizes.replaced import replaced
from landbridge.sizes.size import Extent, Size
from landbridge.vm.device_kernels import LoadedKernels
from landbridge.vm.kernel_step import KernelStep, OwnedBuffer
from landbridge.vm.launch_words import LaunchWords
from landbridge.vm.open_kernel_step import OpenCall, OpenKernelStep, OpenOperand
from landbridge.vm.open_steps import number_at
from landbridge.vm.open_words import OpenWords
from landbridge.vm.program import MoveStep, Step

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from landbridge.vm.program_memory import ProgramMemory

#: The distance of the words of two Calls: every device takes buffers that begin at its multiples.
_WORDS_ALIGNMENT = 256
_WORD_BYTES = 8


def runs_on_devices(steps: Sequence[Step]) -> bool:
    """Returns whether a device runs any of ``steps``, bound for one choice of sizes of an open program."""
    return any(isinstance(step, OpenKernelStep) for step in steps)


def may_be_others(steps: Sequence[Step]) -> bool:
    """Returns whether ``steps`` can be computed for other sizes: one device runs all of them.

    It works in order. Otherwise the waits would depend on which bytes steps share, and that changes with sizes.
    """
    kernels = [step for step in steps if isinstance(step, OpenKernelStep)]
    return (
        len(kernels) == len(steps)
        and len({step.device for step in kernels}) == 1
        and all(step.may_be_another for step in kernels)
    )


class _CallSlots(NamedTuple):
    """What ``call`` takes from the values of extents, by slot: the ``grids`` of its launches. ``first_word``: where its
    words begin among those of its step.
    """

    call: OpenCall
    grids: tuple[tuple[int, ...], ...]
    first_word: int


class OpenKernels:
    """Computes the OpenKernelSteps of ``steps`` for other sizes; the new extents get slots of ``extent_values``.

    ``memory`` is the program's.
    """

    def __init__(self, steps: Sequence[Step], extent_values: ExtentValues, memory: ProgramMemory) -> None:
        self._extent_values, self._extents = extent_values, list(extent_values.extents)
        self._calls: dict[int, list[_CallSlots]] = {}
        #: The slots of all words of a step, those between the words of two Calls included, and the memory for them.
        self._words: dict[int, tuple[NDArray[np.intp], LaunchWords]] = {}
        self._scratch: list[tuple[int, int]] = []  # a slot, and the bytes that there are
        kernel_steps = [step for step in steps if isinstance(step, OpenKernelStep)]
        for step in kernel_steps:
            self._add(step, memory)
        calls = [call for step in kernel_steps for call in step.calls]
        operands = [operand for call in calls for operand in call.operands]
        self._check = _OperandCheck(calls[0].kernels, operands, extent_values) if calls else None

    def _add(self, step: OpenKernelStep, memory: ProgramMemory) -> None:
        slot = self._extent_values.slot
        words: list[int] = []
        zero = slot(0)
        found = self._calls[step.number] = []
        for call in step.calls:
            sizes = [self._extents[n.slots[0]] if isinstance(n, OpenNumber) else n for n in call.sizes]
            by_name = {word_name(number): extent for number, extent in enumerate(sizes)}
            grids = tuple(tuple(slot(_over(n, by_name)) for n in launch.grid) for launch in call.sequence.launches)
            for number, nbytes in enumerate(call.sequence.scratch):
                there = memory.scratch_bytes[call.vdevice, number]
                self._scratch.append((slot(_over(nbytes, by_name)), there))
            found.append(_CallSlots(call, grids, len(words)))
            words += map(slot, sizes)
            words += [zero] * (-len(words) % (_WORDS_ALIGNMENT // _WORD_BYTES))
        self._words[step.number] = (np.array(words, np.intp), LaunchWords(memory, step.calls[0].vdevice, len(words)))

    def fits(self, extent_values: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Returns whether kernels can run where extents have ``extent_values``, by slot: with the scratch buffers that
        there are, and on operands that the device takes. For one choice of sizes, or for several, a row each.
        """
        found = np.ones(extent_values.shape[:-1], np.bool_)
        for slot, there in self._scratch:
            found &= extent_values[..., slot] <= there
        return found if self._check is None else found & self._check.fits(extent_values)

    def steps_at(
        self, steps: Sequence[Step], extent_values: NDArray[np.int64], known: dict[int, KernelStep]
    ) -> tuple[Step, ...]:
        """Returns ``steps`` where extents have ``extent_values``, by slot. ``known`` are the KernelSteps of these
        sizes so far, by number.
        """
        found: list[Step] = []
        values = extent_values.tolist()
        for step in steps:
            match step:
                case OpenKernelStep(number=number):
                    if number not in known:
                        known[number] = self._step_at(step, extent_values, values)
                    found.append(known[number])
                case MoveStep():
                    found.append(step._replace(nbytes=number_at(step.nbytes, values)))
                case _:
                    found.append(step)
        return tuple(found)

    def _step_at(self, step: OpenKernelStep, extent_values: NDArray[np.int64], values: Sequence[int]) -> KernelStep:
        slots, memory = self._words[step.number]
        words = memory.put(extent_values[slots]) if slots.size else None
        created = KernelStep(step.device, step.number, words)
        for call, grids, first_word in self._calls[step.number]:
            operands = [operand.at(values) for operand in call.operands]
            if call.sizes and words is not None:
                base = words.storage.live_region
                start = base.byte_offset + words.byte_offset + first_word * _WORD_BYTES
                operands[-1] = OwnedBuffer(Region(base.space, start), len(call.sizes) * _WORD_BYTES)
            launches = []
            for launch, grid_slots in zip(call.sequence.launches, grids, strict=True):
                grid = tuple([values[slot] for slot in grid_slots])
                if min(grid) > 0:
                    launches.append(launch if grid == launch.grid else replace(launch, grid=grid))
            created.add(call.kernels, launches, [*operands, *call.scratch], unless_same=call.unless_same)
        return created


class _OperandCheck:
    """Checks where ``operands`` of ``kernels`` begin, and their bytes, as binding does."""

    def __init__(self, kernels: LoadedKernels, operands: Sequence[OpenOperand], extent_values: ExtentValues) -> None:
        offsets = {operand.offset for operand in operands if isinstance(operand.offset, OpenNumber)}
        self._offsets = OpenWords(enumerate(offsets))
        self._alignment = np.uint64(kernels.offset_alignment)
        self._most = kernels.device.memory_kind().max_binding_bytes
        extents, slot = list(extent_values.extents), extent_values.slot
        shapes = [[extents[n.slots[0]] if isinstance(n, OpenNumber) else n for n in each.shape] for each in operands]
        most = max(map(len, shapes), default=0)
        rows = [[*map(slot, shape), *[slot(1)] * (most - len(shape))] for shape in shapes]
        self._shapes = np.array(rows, np.intp).reshape(len(shapes), most)
        self._items = np.array([operand.itemsize for operand in operands], np.float64)

    def fits(self, extent_values: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Returns whether the device takes all of them."""
        found: NDArray[np.bool_] = (self._offsets.values(extent_values) % self._alignment == 0).all(axis=-1)
        if self._most is not None:
            nbytes = extent_values[..., self._shapes].prod(axis=-1, dtype=np.float64) * self._items
            found &= (nbytes <= self._most).all(axis=-1)
        return found


def _over(number: Extent, words: Mapping[str, Extent]) -> Extent:
    """Returns ``number``, of a LaunchSequence, with ``words`` in place of the words of a Call."""
    return replaced(number.terms, words) if isinstance(number, Size) else number
