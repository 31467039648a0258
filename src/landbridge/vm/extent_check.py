"""ExtentCheck: checks the sizes of tensors as binding does, for one choice of dimensions after another."""

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

#: Bytes as floats, which do not overflow and are exact for all sizes that memory can have.
Bytes: TypeAlias = "NDArray[np.float64]"


class ExtentCheck:
    """The tensors and calls of ``executable`` as arrays, indexed by slots of ``extent_values``.

    ``storages`` are the bytes of each of its storages. Each register has a row.
    """

    def __init__(self, executable: Executable, extent_values: ExtentValues, storages: Sequence[int]) -> None:
        main = executable.main
        self._io = len(main.inputs) + len(main.outputs)
        fixed = [0] * self._io
        fixed += [executable.constants[parameter_constant(each.name)].nbytes for each in main.parameters]
        row = {register: register for register in range(len(fixed))}
        tensors: list[tuple[int, int, Extent, tuple[Extent, ...], int]] = []
        calls: list[ins.Call] = []
        left = list(storages)
        owned: list[int] = []
        for each in ins.flattened(main.instructions):
            match each:
                case ins.AllocStorage(dst, nbytes):
                    row[dst] = len(fixed)
                    fixed += [left.pop(0), 0]
                    owned.append(row[dst] + 1)
                    tensors.append((row[dst] + 1, row[dst], 0, (nbytes,), 1))
                case ins.LoadConstant(dst, name):
                    row[dst] = len(fixed)
                    fixed.append(executable.constants[name].nbytes)
                case ins.AllocTensor(dst, whole, offset, shape, kind) | ins.View(dst, whole, offset, shape, kind):
                    row[dst] = len(fixed)
                    fixed.append(0)
                    tensors.append((row[dst], row[whole], offset, shape, dtype(kind).itemsize))
                case ins.Loop(trips, slices):
                    taken = smallest(trips, 1)  # a loop without iterations slices nothing
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
        #: The rows of what each storage needs.
        self._owned = np.array(owned, np.intp)
        self._rows, self._wholes = (np.array([each[k] for each in tensors], np.intp) for k in (0, 1))
        self._offsets = np.array([extent_values.slot(offset) for _, _, offset, _, _ in tensors], np.intp)
        self._shapes = padded_slots([shape for _, _, _, shape, _ in tensors], extent_values)
        self._items = np.array([each[4] for each in tensors], np.float64)
        self._tasks = np.array([extent_values.slot(call.tasks) for call in calls], np.intp)
        self._args = np.array([row[register] for call in calls for register in call.args], np.intp)
        self._ends = np.cumsum([len(call.args) for call in calls], dtype=np.intp)

    @property
    def width(self) -> int:
        """Returns the number of extents that it checks."""
        return int(self._shapes.size)

    def sizes(
        self, extent_values: NDArray[np.int64], io: Sequence[int] | NDArray[np.float64]
    ) -> tuple[Bytes, NDArray[np.bool_]]:
        """Returns the bytes of each row for inputs and outputs of ``io``, and whether each tensor fits its memory.

        For one choice of dimensions, or for several: with one row of ``extent_values``, of ``io`` and of the result for
        each.
        """
        extents, offsets = extent_values[..., self._shapes], extent_values[..., self._offsets]
        found = np.empty((*extent_values.shape[:-1], len(self._fixed)))
        found[...] = self._fixed
        found[..., : self._io] = io
        nbytes = found[..., self._rows] = extents.prod(axis=-1, dtype=np.float64) * self._items
        fits = (offsets >= 0) & (offsets + nbytes <= found[..., self._wholes]) & (extents >= 0).all(axis=-1)
        return found, fits.all(axis=-1)

    def storage_bytes(self, sizes: Bytes, numbers: Sequence[int]) -> Bytes:
        """Returns the bytes that the storages ``numbers`` need together, at one choice of dimensions or each of
        several.
        """
        return np.asarray(sizes[..., self._owned[numbers]].sum(axis=-1))

    def is_worth_sharing(self, extent_values: NDArray[np.int64], sizes: Bytes) -> NDArray[np.bool_]:
        """Returns whether several threads are faster for any call, at one choice of dimensions or each of several."""
        sums = np.zeros((*sizes.shape[:-1], len(self._args) + 1))
        np.cumsum(sizes[..., self._args], axis=-1, out=sums[..., 1:])
        nbytes = np.diff(sums[..., np.append(0, self._ends)])
        worth = (extent_values[..., self._tasks] > 1) & (nbytes >= WORTH_SHARING_BYTES)
        return np.asarray(worth.any(axis=-1))


def padded_slots(shapes: Sequence[tuple[Extent, ...]], extent_values: ExtentValues) -> NDArray[np.intp]:
    """Returns the slots of ``extent_values`` of each shape, one row for each, padded with the slot of 1."""
    most, one = max(map(len, shapes), default=0), extent_values.slot(1)
    rows = [[*map(extent_values.slot, shape), *[one] * (most - len(shape))] for shape in shapes]
    return np.array(rows, np.intp).reshape(len(shapes), most)
