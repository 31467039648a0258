"""SizeFit: the state of a program at one choice of its sizes; FitsAhead: those of many choices, computed together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from landbridge.executable.open_number import OpenNumber
from landbridge.executable.parts import TensorSpec
from landbridge.process.locks import cached_property
from landbridge.records import record
from landbridge.sizes.size import Size
from landbridge.vm.kernel_step import KernelStep
from landbridge.vm.open_steps import number_at
from landbridge.vm.open_words import OpenWords
from landbridge.vm.program import Step

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from landbridge.executable.instance import ExtentValues

#: The words that hold addresses in an input or output, each with its offset there.
Places = tuple[tuple[int, int], ...]


@record(slots=True, eq=False)
class SizeFit:
    """The state of a program at one choice of its sizes.

    ``extent_values``: the values of its extents, by slot, then 0. ``specs``: what fits each input and output;
    ``places`` are their words, ``nbytes`` their bytes. ``threads``: the number of threads it runs on. ``ahead``: the
    choices that this is one of, where it was computed with others. Made at the first resize: ``values``, each value of
    its words once, ``steps``, where it does more than one call, and ``kernel_steps``, those of devices by number. Many
    are retained, so what is the same in all of them exists once.
    """

    extent_values: NDArray[np.int64]
    specs: tuple[TensorSpec, ...]
    places: tuple[Places, ...]
    nbytes: list[int]
    threads: int
    ahead: FitsAhead | None = None
    values: NDArray[np.uint64] | None = None
    steps: tuple[Step, ...] | None = None
    kernel_steps: dict[int, KernelStep] | None = None

    def has_io_of(self, other: SizeFit) -> bool:
        """Returns whether what fits the inputs and outputs of ``other`` fits here, at the same words."""
        return (self.specs is other.specs or self.specs == other.specs) and (
            self.places is other.places or self.places == other.places
        )


class OpenSlots:
    """The inputs and outputs of an open program, ``specs``, inputs first; ``places`` are their words.

    ``extent_values`` has a slot for each of their extents. ``fixed`` are those specs that fit all sizes; None for the
    others.
    """

    def __init__(
        self,
        specs: Sequence[TensorSpec],
        places: Sequence[Places],
        fixed: Sequence[TensorSpec | None],
        extent_values: ExtentValues,
    ) -> None:
        self.specs, self.fixed = tuple(specs), tuple(fixed)
        #: The numbers of those with strides, whose bytes do not follow from the shape alone.
        self.strided = [number for number, spec in enumerate(specs) if spec.strides]
        rows = [tuple(map(extent_values.slot, spec.shape)) for spec in specs]
        #: The slots of each shape once, as many inputs and outputs have the same, and for each spec which it has.
        self._shapes = tuple(dict.fromkeys(rows))
        self._shape_of = tuple(map(self._shapes.index, rows))
        self._strides = [tuple(map(extent_values.slot, spec.strides)) for spec in specs]
        #: What ``specs_at`` returned last.
        self._before: tuple[TensorSpec, ...] = self.specs
        self._places = tuple(places)
        self._moves = [any(type(offset) is OpenNumber for _, offset in each) for each in places]

    def specs_at(self, values: Sequence[int]) -> tuple[TensorSpec, ...]:
        """Returns what fits each input and output where slots have ``values``; specs that stay the same exist once."""
        shapes = [tuple([values[slot] for slot in row]) for row in self._shapes]
        found = []
        for before, fixed, number, slots in zip(self._before, self.fixed, self._shape_of, self._strides, strict=True):
            if fixed is not None:
                found.append(fixed)
                continue
            shape = shapes[number]
            if before.shape != shape or slots:
                strides = tuple([values[slot] for slot in slots])
                before = TensorSpec(
                    before.name, shape, before.dtype, strides, before.vdevice, axis_separators=before.axis_separators
                )
            found.append(before)
        self._before = tuple(found)
        return self._before

    def places_at(self, extent_values: NDArray[np.int64]) -> tuple[Places, ...]:
        """Returns the words of each input and output where extents have ``extent_values``, by slot."""
        if not any(self._moves):
            return self._places
        values = extent_values.tolist()
        return tuple(
            tuple((word, number_at(offset, values)) for word, offset in each) if moves else each
            for each, moves in zip(self._places, self._moves, strict=True)
        )


class FitsAhead:
    """The states of a program at choices of sizes, one after the other, all of which fit its memory.

    ``extent_values``: the values of its extents, by slot, then 0, a row for each choice. ``threads``: the number of
    threads at each choice. ``slots`` are the inputs and outputs, none of which has strides; ``shapes`` their extents,
    padded, and ``nbytes`` their bytes, at each choice. ``words`` computes the words of a choice.
    """

    def __init__(
        self,
        extent_values: NDArray[np.int64],
        threads: Sequence[int],
        slots: OpenSlots,
        shapes: NDArray[np.int64],
        nbytes: NDArray[np.int64],
        words: OpenWords,
    ) -> None:
        self.extent_values, self.threads = extent_values, threads
        self._slots, self._shapes, self._nbytes, self._words = slots, shapes, nbytes, words
        #: What fits inputs and outputs at the choice computed last.
        self._specs: tuple[TensorSpec, ...] = slots.specs
        self._specs = self._specs_at(0)

    def __len__(self) -> int:
        return len(self.extent_values)

    def at(self, choice: int) -> SizeFit:
        """Returns the state at ``choice``."""
        if self._has_other_shapes:
            self._specs = self._specs_at(choice)
        row = self.extent_values[choice]
        nbytes = self._nbytes[choice].tolist()
        places = self._slots.places_at(row)
        return SizeFit(row, self._specs, places, nbytes, self.threads[choice], self, self._values[choice])

    @cached_property
    def changing(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Returns the words that differ between choices, and where ``SizeFit.values`` has the value of each."""
        differ = (self._values != self._values[:1]).any(axis=0)[self._words.value_of]
        return self._words.words[differ], self._words.value_of[differ]

    @cached_property
    def _values(self) -> NDArray[np.uint64]:
        """Returns each value of the words once, a row for each choice."""
        return self._words.values(self.extent_values)

    @cached_property
    def _has_other_shapes(self) -> bool:
        return bool((self._shapes != self._shapes[:1]).any())

    def _specs_at(self, choice: int) -> tuple[TensorSpec, ...]:
        """Returns what fits inputs and outputs at ``choice``; specs that are the same at the last one exist once."""
        found = []
        for spec, known, row in zip(self._specs, self._slots.fixed, self._shapes[choice].tolist(), strict=True):
            shape = tuple(row[: len(spec.shape)])
            is_same = known is None and spec.shape == shape
            found.append(known or (spec if is_same else TensorSpec(spec.name, shape, spec.dtype, (), spec.vdevice)))
        return tuple(found)


def is_open(spec: TensorSpec) -> bool:
    """Returns whether extents or strides of ``spec`` depend on sizes."""
    return any(isinstance(extent, Size) for extent in (*spec.shape, *spec.strides))
