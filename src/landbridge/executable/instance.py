"""Instances: an open program with a number for each of its dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from landbridge.errors import ShapeError
from landbridge.executable.executable import Executable
from landbridge.executable.instructions import (
    AllocStorage,
    AllocTensor,
    Call,
    If,
    Instruction,
    LoadConstant,
    View,
    flattened,
)
from landbridge.executable.parts import Function, TensorSpec
from landbridge.sizes.printing import range_text
from landbridge.sizes.size import Extent, Size, dimensions_of
from landbridge.sizes.terms import Symbol


def dimensions(function: Function) -> dict[str, Symbol]:
    """The open dimensions of the inputs of ``function``, by name."""
    specs = (*function.inputs, *function.outputs)
    return dimensions_of([e for spec in specs for e in (*spec.shape, *spec.strides)])


class Numbers:
    """The numbers of a program's sizes, for one choice of dimensions after another.

    Sizes are found by identity, as hashes and comparisons of them walk their terms; equal ones are evaluated once.
    """

    def __init__(self) -> None:
        self._slots: dict[int, int] = {}
        self._slot_of: dict[Size, int] = {}
        self._known: list[Size] = []  # all that have a slot live on, so that no identity comes again

    def at(self, values: Mapping[str, int]) -> Callable[[Extent], int]:
        """The number of each extent where the dimensions have ``values``, by name."""
        slots, numbers = self._slots, [size.at(values) for size in self._slot_of]

        def number(extent: Extent) -> int:
            if isinstance(extent, int):
                return extent
            slot = slots.get(id(extent))
            if slot is None:
                slot = self._slot(extent)
            if slot >= len(numbers):
                numbers.extend(size.at(values) for size in list(self._slot_of)[len(numbers) :])
            return numbers[slot]

        return number

    def _slot(self, size: Size) -> int:
        self._known.append(size)
        slot = self._slots[id(size)] = self._slot_of.setdefault(size, len(self._slot_of))
        return slot


def instance(executable: Executable, values: Mapping[str, int], numbers: Numbers | None = None) -> Executable:
    """``executable`` where its dimensions have ``values``, by name: a program of numbers, of the same code and weights.

    ``numbers`` are those of other instances of the same program. Raises ShapeError for a dimension that has no value,
    and for a value that it cannot have.
    """
    known = dimensions(executable.main)
    check_values(known, values)
    made = _Instance((numbers or Numbers()).at(values))
    functions = {name: made.function(function) for name, function in executable.functions.items()}
    reports = tuple(replace(r, planned_bytes=made.at(r.planned_bytes)) for r in executable.memory)
    constants = {**executable.constants, **made.constants}
    return replace(executable, functions=functions, constants=constants, memory=reports)


def check_values(known: Mapping[str, Symbol], values: Mapping[str, int]) -> None:
    """Raise ShapeError unless ``values`` has one for each dimension, in its range, and no others."""
    for name in values:
        if name not in known:
            raise ShapeError(f"the program has no dimension {name!r}; its open ones: {', '.join(known) or 'none'}")
    for name, symbol in known.items():
        if name not in values:
            raise ShapeError(f"dimension {name!r} has no value; legal: {range_text(symbol)}")
        number, left = divmod(values[name], symbol.unit)
        if left or number < symbol.low or (symbol.high is not None and number > symbol.high):
            raise ShapeError(f"dimension {name!r} is {values[name]}; legal: {range_text(symbol)}")


class _Instance:
    def __init__(self, at: Callable[[Extent], int]) -> None:
        self.at = at
        self._words: dict[tuple[int, ...], str] = {}
        #: The words of kernels, as constants.
        self.constants: dict[str, np.ndarray[Any, Any]] = {}
        self._next = 0

    def function(self, function: Function) -> Function:
        sides = (function.inputs, function.outputs, function.parameters)
        self._next = _registers(function)
        inputs, outputs, parameters = (tuple(map(self._spec, side)) for side in sides)
        instructions = self._block(function.instructions)
        return replace(
            function, inputs=inputs, outputs=outputs, parameters=parameters, instructions=tuple(instructions)
        )

    def _all(self, extents: Sequence[Extent]) -> tuple[int, ...]:
        return tuple(map(self.at, extents))

    def _spec(self, spec: TensorSpec) -> TensorSpec:
        return replace(spec, shape=self._all(spec.shape), strides=self._all(spec.strides))

    def _block(self, instructions: Sequence[Instruction]) -> list[Instruction]:
        made: list[Instruction] = []
        for each in instructions:
            match each:
                case AllocStorage():
                    each = replace(each, nbytes=self.at(each.nbytes), shape=self._all(each.shape))
                case AllocTensor() | View():
                    each = replace(each, offset=self.at(each.offset), shape=self._all(each.shape))
                case Call():
                    each = self._call(each, made)
                case If():
                    each = replace(each, then=tuple(self._block(each.then)), orelse=tuple(self._block(each.orelse)))
            made.append(each)
        return made

    def _call(self, call: Call, before: list[Instruction]) -> Call:
        tasks, moved = self.at(call.tasks), self.at(call.moves_bytes)
        if not call.sizes:
            return replace(call, tasks=tasks, moves_bytes=moved)
        words = self._all(call.sizes)
        name = self._words.setdefault(words, f"extents:{len(self._words)}")
        if name not in self.constants:
            array = self.constants[name] = np.array(words, np.int64)
            array.flags.writeable = False
        register, self._next = self._next, self._next + 1
        before.append(LoadConstant(register, name, call.vdevice))
        return replace(call, tasks=tasks, moves_bytes=moved, sizes=(), args=(*call.args, register))


def _registers(function: Function) -> int:
    """The first register that no instruction defines."""
    defined = [each.dst for each in flattened(function.instructions) if hasattr(each, "dst")]
    return max(defined, default=len(function.inputs) + len(function.outputs) + len(function.parameters) - 1) + 1
