"""Compiles specializations for inputs without elements, such as an empty batch or a past without positions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, combinations, islice

from xdsl.dialects import func

from landbridge.errors import CompileError, InputError
from landbridge.frontend.onnx.specializations import Specializations
from landbridge.ir.graph_ops import HostCallOp
from landbridge.ir.module import IRModule
from landbridge.ir.types import shape_of
from landbridge.sizes.replaced import replaced
from landbridge.sizes.size import Extent, Size, dimension, dimensions_of

#: How many choices of zero dimensions are tried: in all, and as many single dimensions.
_MOST_EMPTY, _MOST_EMPTY_ALONE = 3, 6


def where_zero(
    names: Sequence[str],
    inputs: Collection[Sequence[Extent]],
    specializations: Specializations,
    search: Callable[[Specializations], IRModule],
) -> Iterator[IRModule]:
    """Yields the modules of a model in which some of the dimensions ``names`` are 0, found by ``search``.

    The other dimensions have the ranges of the first of ``specializations``, so that most are found at once. ``inputs``
    are the shapes of the model's inputs.
    """
    first = specializations.taken[0] if names else {}
    chosen = chain.from_iterable(combinations(names, count) for count in range(1, len(names) + 1))
    tried: list[tuple[str, ...]] = []
    pasts: list[str] = []
    for zero in islice(chosen, max(_MOST_EMPTY, min(len(names), _MOST_EMPTY_ALONE))):
        tried.append(zero)
        with suppress(CompileError, InputError):
            module = search(Specializations(begin=_with_zeros(first, zero)))
            if len(zero) == 1 and _has_elements(module):
                pasts += zero
            yield module
    together = tuple(_unified(pasts, [name for name in names if (name,) not in tried], inputs))
    if len(together) > 1 and together not in tried:
        with suppress(CompileError, InputError):
            yield search(Specializations(begin=_with_zeros(first, together)))
    if specializations.broadcast:
        for ones_and_zeros in islice(_ones_that_broadcast(names, first), _MOST_EMPTY):
            with suppress(CompileError, InputError):
                yield search(Specializations(begin=ones_and_zeros))


def _leaves_elements(
    name: str, specializations: Specializations, search: Callable[[Specializations], IRModule]
) -> bool:
    """Returns whether all outputs have elements if dimension ``name`` is 0, according to ``search``."""
    with suppress(CompileError, InputError):
        return bool(specializations.taken) and _has_elements(
            search(Specializations(begin=_with_zeros(specializations.taken[0], [name])))
        )
    return False


def _has_elements(module: IRModule) -> bool:
    """Returns whether all outputs of ``module`` have elements, as they do if only a past has no positions."""
    returned = module.main.body.block.last_op
    assert isinstance(returned, func.ReturnOp)
    return all(extent != 0 for value in returned.operands for extent in shape_of(value.type))


def _unified(pasts: Sequence[str], others: Sequence[str], inputs: Iterable[Sequence[Extent]]) -> list[str]:
    """Returns ``pasts``, and those of ``others`` that occur along the same axes: only a few of the pasts of many layers
    are tried.
    """
    places: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for shape in inputs:
        for axis, extent in enumerate(shape):
            if name := name_of(extent):
                places[name].add((len(shape), axis))
    known = [places[name] for name in pasts]
    return [*pasts, *(name for name in others if places[name] in known)]


def _ones_that_broadcast(names: Sequence[str], first: Mapping[str, Extent]) -> Iterator[dict[str, Extent]]:
    """Yields sizes of dimensions that ``first`` has unified with one of ``names``: some are 0, and the others are 1 and
    broadcast to no elements.
    """
    for name in names:
        unified = [name, *(other for other, e in first.items() if other != name and name_of(e) == name)]
        others = {n: e for n, e in first.items() if not (isinstance(e, Size) and name in e.symbols)}
        chosen = {frozenset(each) for one in unified for each in ([one], [n for n in unified if n != one]) if each}
        for ones in sorted(chosen, key=sorted) if len(unified) > 1 else ():
            yield {**others, **{n: int(n in ones) for n in unified}}


def from_zero(
    module: IRModule,
    names: Sequence[str],
    specializations: Specializations,
    search: Callable[[Specializations], IRModule],
) -> IRModule:
    """Returns the module of a model in which the dimensions ``names`` may be 0, found by ``search``; else ``module``.

    This is for models that are cut into segments, which have no other specialization for these sizes: a decoder with a
    branch that tests for a past has none at first. Without such a branch, only dimensions may be 0 that leave elements
    in all outputs, as a past does. The result is not used if it narrows a dimension that data decide in ``module``.
    """
    if not module.bodies:
        names = [name for name in names[:_MOST_EMPTY_ALONE] if _leaves_elements(name, specializations, search)]
    if not names:
        return module
    taken = specializations.taken[0] if specializations.taken else {}
    names = [
        *names,
        *(name for name, e in taken.items() if name not in names and name_of(e) in names),
    ]  # dimensions that were unified with them
    first = {name: e for name, e in taken.items() if name in names}
    ends = {symbol.name: symbol for symbol in dimensions_of(first.values()).values()}
    begin = {name: dimension(name, 0, ends[name].high) if name in ends else dimension(name, 0) for name in names}
    with suppress(CompileError, InputError):
        found = search(Specializations(begin=begin))
        least = _least_of_data(found)
        if all(least.get(name, 0) <= low for name, low in _least_of_data(module).items()):
            return found
    return module


def _least_of_data(module: IRModule) -> dict[str, int]:
    """Returns the smallest size of each dimension of ``module`` that data decide, by name."""
    calls = [op for op in module.main.body.walk() if isinstance(op, HostCallOp)]
    return {name: symbol.low for op in calls for name, symbol in dimensions_of(op.defines).items()}


def _with_zeros(known: Mapping[str, Extent], names: Iterable[str]) -> dict[str, Extent]:
    """Returns ``known`` with the dimensions ``names`` as 0, also in expressions of other dimensions."""
    zeros = dict.fromkeys(names, 0)
    return {**{n: replaced(e.terms, zeros) if isinstance(e, Size) else e for n, e in known.items()}, **zeros}


def name_of(extent: Extent) -> str:
    """Returns the name of the only dimension in ``extent``; empty if there is none, or more than one."""
    symbols = extent.symbols if isinstance(extent, Size) else ()
    return next(iter(symbols)) if len(symbols) == 1 else ""


def may_be_zero(shapes: Iterable[Sequence[Extent]], declared: Mapping[str, Extent]) -> list[str]:
    """Returns the dimensions of ``shapes`` that are not declared and not narrowed: their ranges begin at 1."""
    fixed = dimensions_of(declared.values())
    known = dimensions_of(chain.from_iterable(shapes))
    return [name for name, symbol in known.items() if name not in fixed and (symbol.low, symbol.unit) == (1, 1)]
