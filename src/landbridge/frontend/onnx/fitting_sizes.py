"""Finds which given extents of inputs are wrong, if they contradict each other somewhere inside a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from landbridge.errors import CompileError, InputError, ShapeError
from landbridge.ir.module import IRModule
from landbridge.sizes.printing import closest_text
from landbridge.sizes.size import Extent, Size, of_symbol
from landbridge.sizes.terms import Symbol


def naming_inputs(
    error: ShapeError,
    given: Mapping[str, Sequence[int | str]],
    search: Callable[[], IRModule],
    shapes: Callable[[IRModule], Mapping[str, Sequence[Extent]]],
) -> ShapeError:
    """Returns ``error`` with the extents of ``given`` that cause it, and the legal ones.

    ``search`` builds the model with the dimensions that its file leaves open, and ``shapes`` returns the input shapes
    of the result, with which the given extents are compared. Returns ``error`` itself if that finds nothing.
    """
    values = [extent for shape in given.values() for extent in shape if isinstance(extent, int)]
    if not values or min(values) < 0:
        return error
    try:
        legal = shapes(search())
    except (CompileError, InputError):
        return error
    for name, shape in given.items():
        wrong = list(_wrong(shape, legal.get(name, ())))
        if wrong:
            return ShapeError(f"input {name!r} cannot be {tuple(shape)}: {'; '.join(wrong)}\n{error}")
    return error


def _wrong(shape: Sequence[int | str], legal: Sequence[Extent]) -> Iterator[str]:
    """Yields a description of each extent that is not legal."""
    for axis, (number, extent) in enumerate(zip(shape, legal, strict=False)):
        if isinstance(number, int) and isinstance(extent, Size) and len(extent.symbols) == 1:
            [symbol] = extent.symbols.values()
            if extent == of_symbol(symbol) and not _holds(symbol, number):
                yield f"axis {axis} is {number}, legal are {closest_text(symbol, number)}"


def _holds(symbol: Symbol, number: int) -> bool:
    units, left = divmod(number, symbol.unit)
    return not left and units >= symbol.low and (symbol.high is None or units <= symbol.high)
