"""Instances: an open program with a number for each of its dimensions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, chain, islice
from typing import Any, TypeVar, cast

import numpy as np

from landbridge.errors import ShapeError
from landbridge.executable.device_image import DeviceImage
from landbridge.executable.executable import Executable
from landbridge.executable.instructions import (
    AllocStorage,
    AllocTensor,
    Call,
    If,
    Instruction,
    LoadConstant,
    Loop,
    Slice,
    View,
    flattened,
)
from landbridge.executable.open_number import OpenNumber
from landbridge.executable.parts import Function, SizeGuard, TensorSpec
from landbridge.identity_map import IdentityMap
from landbridge.sizes.printing import closest_text, range_text
from landbridge.sizes.size import Extent, Size, all_at, dimensions_of
from landbridge.sizes.terms import Atom, Symbol, evaluate

Facts = TypeVar("Facts")


#: Places of a dimension that an error names.
_PLACES = 4


def dimensions(function: Function) -> dict[str, Symbol]:
    """Returns the open dimensions of the inputs of ``function``, by name."""
    specs = (*function.inputs, *function.outputs)
    return dimensions_of([e for spec in specs for e in (*spec.shape, *spec.strides, *spec.elements)])


class ExtentValues:
    """The values of a program's extents, for one choice of dimensions after another.

    Extents, and tuples of them, are looked up by identity, as hashes and comparisons of sizes walk their terms; equal
    ones are evaluated once.
    """

    def __init__(self) -> None:
        self._slot_of: dict[Extent, int] = {}
        self._slots: IdentityMap[Extent, int] = IdentityMap()
        self._rows: IdentityMap[tuple[Extent, ...], tuple[int, ...]] = IdentityMap()
        self._values: Mapping[str, int] = {}
        self._extent_values: list[int] = []
        #: The values of parts of extents that were looked up since the dimensions were chosen.
        self._atoms: dict[Atom, int] = {}
        #: By dimension, the open extents that depend on it, with their slots; those of the first ``_sorted`` slots.
        self._dependents: dict[str, dict[int, Size]] = {}
        self._sorted = 0

    def choose(self, values: Mapping[str, int]) -> None:
        """Sets the dimensions to ``values``, by name. Extents whose dimensions stay are not computed again."""
        if self._values.keys() != values.keys():
            extent_values = all_at(self._slot_of, values)
        elif self._values == values:
            return
        else:
            self._sort()
            changed: dict[int, Size] = {}
            for name, value in values.items():
                if self._values[name] != value:
                    changed |= self._dependents.get(name, {})
            extent_values = list(self._extent_values)
            for slot, number in zip(changed, all_at(changed.values(), values), strict=True):
                extent_values[slot] = number
        self._values, self._extent_values = dict(values), extent_values
        self._atoms.clear()

    def _sort(self) -> None:
        """Note on which dimensions the extents depend that were looked up since the last time."""
        if self._sorted < len(self._slot_of):
            for slot, extent in islice(enumerate(self._slot_of), self._sorted, None):
                for name in extent.symbols if isinstance(extent, Size) else ():
                    self._dependents.setdefault(name, {})[slot] = cast(Size, extent)
            self._sorted = len(self._slot_of)

    @property
    def extents(self) -> Sequence[Extent]:
        """Returns all extents that were looked up, each in its slot."""
        return list(self._slot_of)

    @property
    def every(self) -> Sequence[int]:
        """Returns the values of all extents that were looked up, each in its slot."""
        return self._extent_values

    def slot(self, extent: Extent) -> int:
        """Returns the index of ``extent`` in ``every``, for these and other values of the dimensions."""
        slot = self._slots.get(extent)
        if slot is None:
            slot = self._slots[extent] = self._slot(extent)
        return slot

    def at(self, extent: Extent) -> int:
        """Returns the value of ``extent``."""
        return extent if isinstance(extent, int) else self._extent_values[self.slot(extent)]

    def all(self, extents: tuple[Extent, ...]) -> tuple[int, ...]:
        """Returns the values of ``extents``."""
        row = self._rows.get(extents)
        if row is None:
            is_open = any(isinstance(each, Size) for each in extents)
            row = self._rows[extents] = tuple(map(self._slot, extents)) if is_open else ()
        extent_values = self._extent_values
        return tuple([extent_values[slot] for slot in row]) if row else cast(tuple[int, ...], extents)

    def _slot(self, extent: Extent) -> int:
        slot = self._slot_of.setdefault(extent, len(self._slot_of))
        if slot == len(self._extent_values):
            value = evaluate(extent.terms, self._value_of, self._atoms) if isinstance(extent, Size) else extent
            self._extent_values.append(value)
        return slot

    def _value_of(self, symbol: Symbol) -> int:
        return self._values[symbol.name]


class OpenExtentValues:
    """Looks up the values of ``extent_values`` as numbers that remember their slots."""

    def __init__(self, extent_values: ExtentValues) -> None:
        self._extent_values = extent_values
        self._known: IdentityMap[Extent, OpenNumber] = IdentityMap()

    def at(self, extent: Extent) -> int:
        """Returns the value of ``extent``, an OpenNumber where that is a Size: the same one at each call."""
        if isinstance(extent, int):
            return extent
        found = self._known.get(extent)
        if found is None:
            slot = self._extent_values.slot(extent)
            found = self._known[extent] = OpenNumber.created(self._extent_values.every[slot], (slot,))
        return found

    def all(self, extents: tuple[Extent, ...]) -> tuple[int, ...]:
        """Returns the values of ``extents``."""
        return tuple(map(self.at, extents))


def instance(
    executable: Executable,
    values: Mapping[str, int],
    extent_values: ExtentValues | None = None,
    *,
    remembers: bool = False,
) -> Executable:
    """Returns ``main`` of ``executable`` with ``values`` for its dimensions, by name: all sizes are numbers, code and
    weights are the same.

    ``extent_values`` are shared with other instances of the same program. ``remembers``: sizes that vary are
    OpenNumbers, with slots of ``extent_values``. Raises ShapeError for a dimension without a value and for an illegal
    value.
    """
    extent_values = ExtentValues() if extent_values is None else extent_values
    choose_legal(executable.main, dimensions(executable.main), values, extent_values)
    of_devices = {n for n, module in enumerate(executable.modules) if isinstance(module.image, DeviceImage)}
    created = _Instance(OpenExtentValues(extent_values) if remembers else extent_values, of_devices)
    functions = {"main": created.function(executable.main)}
    owned = (r for r in executable.memory if r.program == "main")
    reports = tuple(replace(r, planned_bytes=extent_values.at(r.planned_bytes)) for r in owned)
    constants = {**executable.constants, **created.constants()}
    return replace(executable, functions=functions, constants=constants, memory=reports)


def choose_legal(
    main: Function, known: Mapping[str, Symbol], values: Mapping[str, int], extent_values: ExtentValues
) -> None:
    """Sets ``extent_values`` to ``values`` of the ``known`` dimensions of ``main``, by name.

    Raises ShapeError for a dimension without a value, for an illegal value, and where a guard fails.
    """
    check_values(known, values, main.inputs)
    extent_values.choose(values)
    for guard in main.guards:
        check_guard(guard, extent_values.at(guard.found), extent_values.at(guard.legal), values)


def check_guards(main: Function, values: Mapping[str, int]) -> None:
    """Raises ShapeError unless all guards of ``main`` hold where its dimensions have ``values``, by name."""
    for guard in main.guards:
        found, legal = (e.at(values) if isinstance(e, Size) else e for e in (guard.found, guard.legal))
        check_guard(guard, found, legal, values)


def check_guard(guard: SizeGuard, found: int, legal: int, values: Mapping[str, int]) -> None:
    """Raises ShapeError unless the subject of ``guard`` is ``legal`` where dimensions have ``values``, by name; those
    that the guard does not depend on may be among them.
    """
    if found != legal:
        given = ", ".join(f"{name}={values[name]}" for name in dimensions_of([guard.found, guard.legal]))
        raise ShapeError(f"{guard.subject} is {found} with {given}; {legal} is legal")


def check_values(known: Mapping[str, Symbol], values: Mapping[str, int], inputs: Sequence[TensorSpec]) -> None:
    """Raises ShapeError unless ``values`` has one for each dimension of ``inputs``, in its range, and no others."""
    for name in values:
        if name not in known:
            shown = ", ".join(f"{each} ({_places(each, inputs)})" for each in known)
            raise ShapeError(
                f"the program has no dimension {name!r}; its open ones: {shown or 'none'}. Dimensions that have to be "
                "equal have the first of their names"
            )
    for name, symbol in known.items():
        if name not in values:
            raise ShapeError(f"dimension {name!r} has no value; legal: {range_text(symbol)}")
        number, left = divmod(values[name], symbol.unit)
        if left or number < symbol.low or (symbol.high is not None and number > symbol.high):
            raise ShapeError(
                f"dimension {name!r} is {values[name]}; legal: {range_text(symbol)}: "
                f"{closest_text(symbol, values[name])}"
            )


def _places(name: str, inputs: Sequence[TensorSpec]) -> str:
    """Returns a text that says which axes of ``inputs`` have the dimension ``name``."""
    found = [
        f"{subject} {i} of {spec.name!r}"
        for spec in inputs
        for subject, extents in (("axis", spec.shape), ("element", spec.elements))
        for i, extent in enumerate(extents)
        if isinstance(extent, Size) and name in extent.symbols
    ]
    return ", ".join(found[:_PLACES] + ["..."] * (len(found) > _PLACES))


def spec_at(spec: TensorSpec, extent_values: ExtentValues | OpenExtentValues) -> TensorSpec:
    """Returns ``spec`` with the numbers of ``extent_values``."""
    return TensorSpec(
        spec.name,
        extent_values.all(spec.shape),
        spec.dtype,
        extent_values.all(spec.strides),
        spec.vdevice,
        axis_separators=spec.axis_separators,
    )


class _Instance:
    def __init__(self, extent_values: ExtentValues | OpenExtentValues, of_devices: Collection[int]) -> None:
        self._extent_values, self._at, self._all = extent_values, extent_values.at, extent_values.all
        #: The modules whose kernels a device runs.
        self._of_devices = of_devices
        #: The words of those kernels, and the constants that they become.
        self._words: dict[tuple[int, ...], str] = {}
        self._next = 0

    def function(self, function: Function) -> Function:
        sides = (function.inputs, function.outputs, function.parameters)
        self._next = _registers(function)
        inputs, outputs, parameters = (tuple(spec_at(spec, self._extent_values) for spec in side) for side in sides)
        instructions = self._block(function.instructions)
        return replace(
            function, inputs=inputs, outputs=outputs, parameters=parameters, instructions=tuple(instructions)
        )

    def constants(self) -> dict[str, np.ndarray[Any, Any]]:
        """Returns the words of kernels of devices by name, as parts of one array."""
        every = np.fromiter(chain.from_iterable(self._words), np.int64)
        every.flags.writeable = False
        ends = accumulate(map(len, self._words))
        return {n: every[end - len(w) : end] for (w, n), end in zip(self._words.items(), ends, strict=True)}

    def _block(self, instructions: Sequence[Instruction]) -> list[Instruction]:
        created: list[Instruction] = []
        for each in instructions:
            match each:
                case AllocStorage():
                    each = _with(each, nbytes=self._at(each.nbytes), shape=self._all(each.shape))
                case AllocTensor() | View():
                    each = _with(each, offset=self._at(each.offset), shape=self._all(each.shape))
                case Call():
                    each = self._call(each, created)
                case If():
                    each = replace(each, then=tuple(self._block(each.then)), orelse=tuple(self._block(each.orelse)))
                case Loop():
                    slices, body = tuple(map(self._slice, each.slices)), tuple(self._block(each.body))
                    each = replace(each, trips=self._at(each.trips), slices=slices, body=body)
            created.append(each)
        return created

    def _slice(self, each: Slice) -> Slice:
        return _with(each, first=self._at(each.first), stride=self._at(each.stride), shape=self._all(each.shape))

    def _call(self, call: Call, before: list[Instruction]) -> Call:
        tasks, moved, sizes = self._at(call.tasks), self._at(call.moves_bytes), self._all(call.sizes)
        if not sizes or call.module not in self._of_devices:
            return _with(call, tasks=tasks, moves_bytes=moved, sizes=sizes)
        name = self._words.setdefault(sizes, f"extents:{len(self._words)}")
        register, self._next = self._next, self._next + 1
        before.append(LoadConstant(register, name, call.vdevice))
        return _with(call, tasks=tasks, moves_bytes=moved, sizes=sizes, args=(*call.args, register))


def _with(facts: Facts, **changes: object) -> Facts:
    """Returns a copy of ``facts`` with changed fields, as ``dataclasses.replace`` in a quarter of the time, without
    ``__post_init__``.
    """
    created: Facts = object.__new__(type(facts))
    created.__dict__.update(facts.__dict__, **changes)
    return created


def _registers(function: Function) -> int:
    """Returns the first register that no instruction defines."""
    defined = [each.dst for each in flattened(function.instructions) if hasattr(each, "dst")]
    return max(defined, default=len(function.inputs) + len(function.outputs) + len(function.parameters) - 1) + 1
