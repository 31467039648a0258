"""ExtentCheck: what binding looks at in the sizes of tensors, for one choice of dimensions after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from landbridge.dtypes import dtype
from landbridge.executable import instructions as ins
from landbridge.executable.executable import Executable
from landbridge.executable.instance import ExtentValues
from landbridge.executable.parts import parameter_constant
from landbridge.sizes.size import Extent, smallest
from landbridge.vm.bind import WORTH_SHARING_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Bytes; as floats, which do not overflow and are exact where memory can be so large.
Bytes: TypeAlias = "NDArray[np.float64]"


class ExtentCheck:
    """The tensors and calls of ``executable`` in arrays, by slots of ``extent_values``; ``storages`` are the bytes that
    there are for each of its storages. Registers have a row each."""

    def __init__(self, executable: Executable, extent_values: ExtentValues, storages: Sequence[int]) -> None:
        main = executable.main
        self._io = len(main.inputs) + len(main.outputs)
        fixed = [0] * self._io
        fixed += [executable.constants[parameter_constant(each.name)].nbytes for each in main.parameters]
        row = {register: register for register in range(len(fixed))}
        tensors: list[tuple[int, int, Extent, tuple[Extent, ...], int]] = []
        calls: list[ins.Call] = []
        left = list(storages)
        for each in ins.flattened(main.instructions):
            match each:
                case ins.AllocStorage(dst, nbytes):
                    row[dst] = len(fixed)
                    fixed += [left.pop(0), 0]
                    tensors.append((row[dst] + 1, row[dst], 0, (nbytes,), 1))
                case ins.LoadConstant(dst, name):
                    row[dst] = len(fixed)
                    fixed.append(executable.constants[name].nbytes)
                case ins.AllocTensor(dst, whole, offset, shape, kind) | ins.View(dst, whole, offset, shape, kind):
                    row[dst] = len(fixed)
                    fixed.append(0)
                    tensors.append((row[dst], row[whole], offset, shape, dtype(kind).itemsize))
                case ins.Loop(trips, slices):
                    taken = smallest(trips, 1)  # no iteration looks at no slice
                    for part in slices:
                        stride = -part.stride if part.back else part.stride
                        last = taken * part.first + (trips - taken) * stride
                        row[part.dst] = len(fixed)
                        fixed += [0, 0]
                        item = dtype(part.dtype).itemsize
                        tensors.append((row[part.dst], row[part.dst], 0, part.shape, item))
                        tensors.append((row[part.dst] + 1, row[part.src], last, (taken, *part.shape), item))
                case ins.Call():
                    calls.append(each)
        self._fixed = np.array(fixed, np.float64)
        self._rows, self._wholes = (np.array([each[k] for each in tensors], np.intp) for k in (0, 1))
        self._offsets = np.array([extent_values.slot(offset) for _, _, offset, _, _ in tensors], np.intp)
        self._shapes = padded_slots([shape for _, _, _, shape, _ in tensors], extent_values)
        self._items = np.array([each[4] for each in tensors], np.float64)
        self._tasks = np.array([extent_values.slot(call.tasks) for call in calls], np.intp)
        self._args = np.array([row[register] for call in calls for register in call.args], np.intp)
        self._ends = np.cumsum([len(call.args) for call in calls], dtype=np.intp)

    @property
    def width(self) -> int:
        """How many extents it looks at."""
        return int(self._shapes.size)

    def sizes(
        self, extent_values: NDArray[np.int64], io: Sequence[int] | NDArray[np.float64]
    ) -> tuple[Bytes, NDArray[np.bool_]]:
        """The bytes of each row where inputs and outputs have ``io``, and whether each tensor lies in its whole.

        For one choice of dimensions, or a row of ``extent_values``, of ``io`` and of the result for each of several.
        """
        extents, offsets = extent_values[..., self._shapes], extent_values[..., self._offsets]
        found = np.empty((*extent_values.shape[:-1], len(self._fixed)))
        found[...] = self._fixed
        found[..., : self._io] = io
        owned = found[..., self._rows] = extents.prod(axis=-1, dtype=np.float64) * self._items
        fits = (offsets >= 0) & (offsets + owned <= found[..., self._wholes]) & (extents >= 0).all(axis=-1)
        return found, fits.all(axis=-1)

    def is_worth_sharing(self, extent_values: NDArray[np.int64], sizes: Bytes) -> bool:
        """Whether several threads are quicker at any call, for one choice of dimensions."""
        sums = np.cumsum(np.append(0, sizes[self._args]))[np.append(0, self._ends)]
        return bool(((extent_values[self._tasks] > 1) & (np.diff(sums) >= WORTH_SHARING_BYTES)).any())


def padded_slots(shapes: Sequence[tuple[Extent, ...]], extent_values: ExtentValues) -> NDArray[np.intp]:
    """The slots of ``extent_values`` of each of ``shapes``, a row each; behind shorter ones the slot of 1."""
    most, one = max(map(len, shapes), default=0), extent_values.slot(1)
    rows = [[*map(extent_values.slot, shape), *[one] * (most - len(shape))] for shape in shapes]
    return np.array(rows, np.intp).reshape(len(shapes), most)
