"""Imports a node of the main graph: where it asks about a size, the walk decides that and imports the node again."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol, cast

import numpy as np
import onnx_ir as ir

from landbridge.errors import CompileError, LandbridgeError, UndecidedSizeError
from landbridge.frontend.onnx.decisions import Decisions
from landbridge.frontend.onnx.row_sequences import RowSequence
from landbridge.frontend.onnx.sequences import TensorSequence
from landbridge.frontend.onnx.values import ImportedValue, renamed
from landbridge.ir.graph_builder import GraphBuilder
from landbridge.ir.replaced_sizes import SizedOperations, SizeReplacer
from landbridge.sizes.size import Extent, dimensions_of


class _Walk(Protocol):
    """The walk of a main graph."""

    g: GraphBuilder
    decisions: Decisions
    sized: SizedOperations
    values: ChainMap[ir.Value, ImportedValue]

    def checkpoint(self) -> Callable[[], None]: ...


def decided(
    walk: _Walk, node: ir.Node, results: Callable[[ir.Node], Sequence[ImportedValue]]
) -> Sequence[ImportedValue]:
    """Returns the ``results`` of ``node``, in terms of dimensions that its questions may have narrowed.

    What holds in a range of a dimension holds in a narrower one, so that what was built before the node stays, with the
    narrower dimension in place of the wider one. Raises the error of a question that no narrowing decides, or if the
    walk has to begin again with what was decided.
    """
    decisions = walk.decisions
    while True:
        restore = walk.checkpoint()
        error: LandbridgeError | None = None
        try:
            found = results(node)
        except LandbridgeError as raised:
            error = raised
        if decisions.must_restart or (decisions.inner and walk.g.module.bodies):
            decisions.must_restart = True
            if error is None:
                return found  # the rest of the walk may unify more
            raise error
        if error is None and not decisions.inner:
            return found
        if decisions.inner:
            decisions.take_inner()
        elif not isinstance(error, UndecidedSizeError) or not decisions.decide(error):
            assert error is not None
            raise error
        if decisions.must_restart:
            continue
        restore()
        try:
            decisions.must_restart = bool(walk.g.module.bodies) or not _narrow(walk)
        except (CompileError, ValueError):
            decisions.must_restart = True
        if decisions.must_restart:
            raise error or CompileError("the walk begins again with what it decided")


def _narrow(walk: _Walk) -> bool:
    """Replace dimensions by what was decided in all that ``walk`` has built, except in kernels; returns whether that is
    what the walk would have built for the narrower dimensions.
    """
    walk.decisions.is_coarse = False
    g, extent = walk.g, walk.decisions.extent
    replacer = SizeReplacer(extent)
    for argument in g.block.args:
        replacer.value(argument)
    walk.sized.replace(walk.decisions.changed, extent)
    for value, array in g.whole.items():
        g.whole[value] = renamed(g, array, extent)
    guards = [replace(e, found=_int(e.found, extent), legal=_int(e.legal, extent)) for e in g.guards]
    g.guards[:] = [guard for guard in guards if guard.found != guard.legal]
    for value, (growth, positions) in g.growths.items():
        growth = replace(growth, before=_int(growth.before, extent), after=_int(growth.after, extent))
        g.growths[value] = growth, positions
    known = walk.decisions.known
    for name in walk.decisions.changed & g.read_dimensions:
        g.read_dimensions |= dimensions_of([known[name]]).keys()
    g.data.declare(known)
    for key, found in walk.values.items():
        walk.values[key] = _now(walk, found)
    return not walk.decisions.is_coarse


def _int(extent: int, of: Callable[[Extent], Extent]) -> int:
    return cast(int, of(extent))


def _now(walk: _Walk, value: Any) -> Any:
    """Returns ``value`` of a walk with the dimensions as they are now; tensors have other types already."""
    if isinstance(value, RowSequence):
        return replace(value, rows=_now(walk, value.rows))
    if isinstance(value, TensorSequence):
        return replace(value, elements=tuple(_now(walk, each) for each in value.elements))
    is_sizes = isinstance(value, np.ndarray) and value.dtype == object
    return renamed(walk.g, value, walk.decisions.extent) if is_sizes else value
