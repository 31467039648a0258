"""Which extents of inputs a model can be run in, where those that were given contradict each other somewhere inside."""

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
    """``error`` of a model whose inputs have the ``given`` shapes, saying which of their extents it comes from.

    ``search`` makes the model with what its file leaves open left so, and ``shapes`` are those of its inputs: the
    extents that it can be run in are compared with what was given. Where that tells nothing, ``error``.
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
    """What is wrong with each extent that is no legal one."""
    for axis, (number, extent) in enumerate(zip(shape, legal, strict=False)):
        if isinstance(number, int) and isinstance(extent, Size) and len(extent.symbols) == 1:
            [symbol] = extent.symbols.values()
            if extent == of_symbol(symbol) and not _holds(symbol, number):
                yield f"axis {axis} is {number}, legal are {closest_text(symbol, number)}"


def _holds(symbol: Symbol, number: int) -> bool:
    units, left = divmod(number, symbol.unit)
    return not left and units >= symbol.low and (symbol.high is None or units <= symbol.high)
