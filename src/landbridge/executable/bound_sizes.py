"""Derives the open dimensions of a program from the shapes, and some elements, of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias, TypeVar

from landbridge.errors import ShapeError
from landbridge.executable.parts import Function, TensorSpec
from landbridge.sizes.printing import closest_text, range_text
from landbridge.sizes.size import Extent, Size, of_symbol
from landbridge.sizes.terms import KNOWN, Symbol, split_constant

_T = TypeVar("_T")
#: Where a size comes from: a text, or an axis or element of an input, by number and name.
Origin: TypeAlias = "str | tuple[str, int, str]"

#: What errors say before the shape of a program, which is one of numbers perhaps.
_TAKES = "; the program takes "
#: Choices that an error lists.
_SHOWN = 16


class BoundSizes:
    """Collects the sizes of open dimensions from the inputs of a run, one input after the other. ``values`` has them by
    name; errors name the input that each comes from.
    """

    def __init__(self) -> None:
        self.values: dict[str, int] = {}
        self._forms: dict[str, Origin] = {}

    def declare(self, name: str, size: int, where: str) -> None:
        """Adds dimension ``name`` with its ``size``; ``where`` says in errors where it comes from."""
        self.values[name], self._forms[name] = size, where

    def add(self, spec: TensorSpec, shape: Sequence[int]) -> None:
        """Adds the dimensions that ``shape``, of input ``spec``, determines. Raises ShapeError where it has another
        rank or fixed extent, is out of a dimension's range, or contradicts an earlier input.

        An extent of several dimensions determines none; ``check`` compares it later.
        """
        if len(shape) != len(spec.shape):
            raise ShapeError(f"input {spec.name!r} has shape {tuple(shape)}{_TAKES}{_shown(spec.shape)}")
        for axis, (extent, number) in enumerate(zip(spec.shape, shape, strict=True)):
            if isinstance(extent, int):
                if extent != number:
                    raise ShapeError(f"input {spec.name!r} has shape {tuple(shape)}{_TAKES}{_shown(spec.shape)}")
                continue
            solved = _solved(extent, number)
            if solved is not None:
                self._set(*solved, extent, number, ("axis", axis, spec.name))

    def add_elements(self, spec: TensorSpec, elements: Sequence[int]) -> None:
        """Adds the dimensions that ``elements``, the values of input ``spec``, determine; raises ShapeError as ``add``
        does.
        """
        for i, (extent, number) in enumerate(zip(spec.elements, elements, strict=True)):
            where = "element", i, spec.name
            if isinstance(extent, int):
                if extent != number:
                    raise ShapeError(f"{_text(where)} is {number}; the program was compiled for {extent}")
                continue
            solved = _solved(extent, number)
            if solved is not None:
                self._set(*solved, extent, number, where)

    def check(self, spec: TensorSpec, shape: Sequence[int], elements: Sequence[int] = ()) -> None:
        """Raises ShapeError unless each extent and element that ``spec`` declares has, with the collected dimensions,
        the size in ``shape`` and ``elements``. All of its dimensions must be collected.
        """
        self._check("axis", spec.name, spec.shape, shape)
        if spec.elements:
            self._check("element", spec.name, spec.elements, elements)

    def _check(self, subject: str, name: str, extents: Sequence[Extent], extent_values: Sequence[int]) -> None:
        for i, (extent, number) in enumerate(zip(extents, extent_values, strict=True)):
            if says_dimension(extent):
                continue  # it was compared when it was added
            if isinstance(extent, Size) and extent.at(self.values) != number:
                given = ", ".join(self._known_size(each) for each in extent.symbols)
                legal = extent.at(self.values)
                raise ShapeError(
                    f"{subject} {i} of input {name!r} is {number}; it must be {extent}, {legal} with {given}"
                )

    def _known_size(self, name: str) -> str:
        """Returns the size of dimension ``name``, and what determines it."""
        return f"{name}={self.values[name]}{self._by(name)}"

    def _by(self, name: str) -> str:
        """Returns what determines dimension ``name``: an input, else data, or the program around this one."""
        origin = self._forms.get(name)
        return ", as the run decided before" if origin is None else f" by {_text(origin)}"

    def _set(self, symbol: Symbol, units: int | None, extent: Size, number: int, where: Origin) -> None:
        high, before = symbol.high, self.values.get(symbol.name)
        if before is not None and units is not None and before != units * symbol.unit:
            raise ShapeError(
                f"dimension {symbol.name!r} is {before}{self._by(symbol.name)} and "
                f"{units * symbol.unit} by {_text(where)}; they must be equal"
            )
        if units is None or units < symbol.low or (high is not None and units > high):
            raise ShapeError(
                f"{_text(where)} is {number}; legal: {extent}, with {symbol.name} in {range_text(symbol)}"
                + (f": {closest_text(symbol, number)}" if extent == of_symbol(symbol) else "")
            )
        self.values[symbol.name] = units * symbol.unit
        self._forms.setdefault(symbol.name, where)


def _text(origin: Origin) -> str:
    if isinstance(origin, str):
        return origin
    subject, number, name = origin
    return f"{subject} {number} of input {name!r}"


def says_dimension(extent: Extent) -> bool:
    """Returns whether ``BoundSizes.add`` checks ``extent`` completely: it is a number, or ``a * symbol + b``, which
    determines its dimension. Other extents need ``BoundSizes.check``.
    """
    return isinstance(extent, int) or solvable_form(extent) is not None


@lru_cache(maxsize=KNOWN)
def solvable_form(extent: Extent) -> tuple[Symbol, int, int] | None:
    """Returns (symbol, a, b) of an extent ``a * symbol + b``; None for an extent of another form."""
    terms, plus = split_constant(extent.terms) if isinstance(extent, Size) else ((), extent)
    match terms:
        case ((((Symbol() as symbol, 1),), factor),):
            return symbol, factor, plus
    return None


def _solved(extent: Size, number: int) -> tuple[Symbol, int | None] | None:
    """Returns the symbol of an extent ``a * symbol + b`` and the value with which it is ``number``, None where no
    integer is; None instead of both for an extent of another form.
    """
    form = solvable_form(extent)
    if form is None:
        return None
    symbol, factor, plus = form
    units, left = divmod(number - plus, factor)
    return symbol, None if left else units


def _shown(shape: Sequence[Extent]) -> str:
    return f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"


def sizes_of_inputs(
    specs: Sequence[TensorSpec],
    shapes: Mapping[str, Sequence[int]],
    elements: Mapping[str, Sequence[int]] | None = None,
) -> dict[str, int]:
    """Returns the sizes of the open dimensions, by name, of a program whose inputs have ``shapes``.

    ``elements`` has, by input name, the elements of those inputs whose ``TensorSpec`` declares them, in order. Raises
    ShapeError where shapes or elements do not fit.
    """
    bound, read = BoundSizes(), elements or {}
    for spec in specs:
        bound.add(spec, shapes[spec.name])
        if spec.elements:
            bound.add_elements(spec, read[spec.name])
    for spec in specs:
        bound.check(spec, shapes[spec.name], read.get(spec.name, ()))
    return bound.values


def programs_of(programs: Mapping[str, Function], elements: Mapping[str, Sequence[int]]) -> list[str]:
    """Returns the names of the ``programs`` that may fit inputs with these ``elements``: several where they differ only
    in the sizes they are for, and all where none fits and no input's elements are all numbers, as the check of each
    program then reports more.

    Raises ShapeError, which lists the legal elements, where none fits otherwise.
    """
    if len(programs) == 1:
        return list(programs)
    found = [
        name
        for name, function in programs.items()
        if all(_may_be(spec.elements, elements[spec.name]) for spec in function.inputs if spec.elements)
    ]
    if found:
        return found
    if not any(s.elements and all(map(_is_number, s.elements)) for f in programs.values() for s in f.inputs):
        return list(programs)  # each error says what its program takes
    chosen = [s.name for s in next(iter(programs.values())).inputs if s.elements and all(map(_is_number, s.elements))]
    choices = sorted([s.elements for s in f.inputs if s.name in chosen] for f in programs.values())
    legal = [", ".join(str(list(elements)) for elements in each) for each in choices]
    given = ", ".join(f"input {name!r} is {list(elements[name])}" for name in chosen)
    raise ShapeError(f"{given}; legal: {'; '.join(legal[:_SHOWN])}{'; ...' * (len(legal) > _SHOWN)}")


class ProgramsByShapes:
    """Selects from ``programs`` those that may fit inputs of given shapes.

    Programs for open extents of 0 are selected only where an input has an extent of 0; all others always are.
    """

    def __init__(self, programs: Mapping[str, Function]) -> None:
        self._all = programs
        first = next(iter(programs.values()))
        self._with_elements = {n: f for n, f in programs.items() if not _is_for_nothing(f, first)}
        self._differ = len(self._with_elements) < len(programs)

    def of(self, shapes: Iterable[Sequence[int]]) -> Mapping[str, Function]:
        """Returns the programs that may fit inputs of ``shapes``, by name."""
        return self._all if self._differ and any(0 in shape for shape in shapes) else self._with_elements


def _is_for_nothing(function: Function, first: Function) -> bool:
    return any(
        0 in spec.shape and 0 not in declared.shape
        for spec, declared in zip(function.inputs, first.inputs, strict=True)
    )


def first_that_fits(names: Sequence[str], look: Callable[[str], _T]) -> _T:
    """Returns the result of ``look`` for the first of the programs called ``names`` that takes the sizes of a run.

    Raises ShapeError where none does, with the reason of each: each extent is named once, and programs for single
    numbers only where there are no others.
    """
    ended: list[str] = []
    for name in names:
        try:
            return look(name)
        except ShapeError as error:
            if len(names) == 1:
                raise
            ended.append(str(error))
    reported = [text for text in ended if _TAKES not in text] or ended
    texts = {text.partition("; legal: ")[0]: text for text in reversed(reported)}
    raise ShapeError("; else ".join(reversed(texts.values())))


def _may_be(declared: Sequence[Extent], found: Sequence[int]) -> bool:
    return len(declared) == len(found) and all(
        e == n for e, n in zip(declared, found, strict=True) if isinstance(e, int)
    )


def _is_number(extent: Extent) -> bool:
    return isinstance(extent, int)
