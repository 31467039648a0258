"""Searches modules of a model for sizes that its first module does not cover: other branches, broadcasting, windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice

from landbridge.errors import CompileError, InputError
from landbridge.frontend.onnx.specializations import Specializations
from landbridge.ir.graph_builder import Broadcasting
from landbridge.ir.graph_ops import CallOp
from landbridge.ir.module import IRModule
from landbridge.ir.traversal import operations_of
from landbridge.sizes.size import Extent, dimensions_of

#: The most other ranges of dimensions, in which a model computes something else, that are tried.
_MOST_OTHERS = 4
#: The most kernels of a model that is also compiled for images smaller than the window of a pool, whose results have no
#: elements. Nobody runs larger models on such images, and a second program takes as long to compile as the first.
_MOST_KERNELS = 16


def other_branches(
    specializations: Specializations, search: Callable[[Specializations], IRModule]
) -> Iterator[IRModule]:
    """Yields modules for other ranges of dimensions, in which the model takes another branch, found by ``search``."""
    for begin in islice(specializations.others(), _MOST_OTHERS):
        other = Specializations(begin=begin)
        with suppress(CompileError, InputError):
            yield search(other)
            specializations.taken += other.taken
            specializations.seen += other.seen


def where_broadcast(
    specializations: Specializations, broadcasting: Broadcasting, search: Callable[[Specializations], IRModule]
) -> Iterator[IRModule]:
    """Yields a module for runs in which an extent of one input is 1 and broadcasts to that of another, found by
    ``search``.

    Yields none if ``specializations`` unified no such extents, or if a rule of the model requires that they are equal.
    """
    if not specializations.broadcast:
        return
    broadcasting.begin(either=True)
    try:
        with suppress(CompileError, InputError):
            module = search(Specializations())
            if broadcasting.found_any:
                yield module
    finally:
        broadcasting.begin(either=False)


def without_windows(
    module: IRModule,
    specializations: Specializations,
    dimensions: Mapping[str, Extent],
    search: Callable[[Specializations], IRModule],
) -> Iterator[IRModule]:
    """Yields modules for images smaller than the window of a pool, if ``module`` is small."""
    if len(operations_of(module.main, CallOp)) <= _MOST_KERNELS:
        empty = specializations.without_windows(dimensions_of(dimensions.values()))
        yield from other_branches(Specializations(specializations.taken, empty), search)
