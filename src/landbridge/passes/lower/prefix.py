"""The loops that all nests of a PrimFunc share; a task runs all nests for one iteration of them, with small
temporaries.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from xdsl.ir import SSAValue

from landbridge.ir.types import shape_of
from landbridge.passes.lower.access import ElementAccess, Linear
from landbridge.passes.lower.guards import full_ranges, index_range
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.row_memory import index_strides
from landbridge.sizes.size import at_least


def shared_prefix(nests: list[Nest]) -> int:
    """Returns how many leading parallel loops all nests share, such that data between nests stays inside one
    iteration.
    """
    if len(nests) < 2:
        return 0
    between = _passed_between(nests)
    if any(between & n.loaded() for n in nests):
        return 0
    length = 0
    tiled = {d for n in nests for b in n.partial_tiles for d in (b.outer, b.inner)}  # such a pair is peeled or masked
    while length not in tiled and all(length < len(n.dims) and not n.dims[length].reduction for n in nests):
        if len({n.dims[length].extent for n in nests}) != 1 or not _separate(nests, between, length + 1):
            break
        length += 1
    return length


def task_prefix(nests: list[Nest]) -> int:
    """Returns ``shared_prefix``, or fewer loops, so that vectors can lie along the next ones.

    If nests pass each other no data, the prefix ends before the first loop along which results are contiguous: there
    are no temporaries to keep small. Otherwise it ends before a loop along which operands are contiguous, if they are
    contiguous along none after the prefix; temporaries are then as long as that loop.
    """
    length = shared_prefix(nests)
    if _passed_between(nests):
        return _vectors_left(nests, length)
    along = (i for i in range(length) if any(_lies_along(n, i) for n in nests))
    return next(along, length)


def _vectors_left(nests: list[Nest], length: int) -> int:
    """Returns ``length``, or fewer loops if operands are contiguous along one of these and along none after them."""
    between = _passed_between(nests)
    reads = [a for n in nests for a in n.accesses() if a.buffer not in between]
    deepest = max(len(n.dims) for n in nests)
    along = [d for d in range(deepest) if any(a.index.coeff(d) == 1 for a in reads)]
    return min(length, along[-1]) if along and along[-1] < length else length


def _lies_along(nest: Nest, d: int) -> bool:
    """Returns whether loop ``d`` has more than one iteration and steps by one element through at least one stored
    output of ``nest``.
    """
    return nest.dims[d].extent != 1 and any(
        w.index.coeff(d) == 1 for s in nest.stages for w, stored in zip(s.writes, s.stored, strict=True) if stored
    )


def _passed_between(nests: list[Nest]) -> set[SSAValue]:
    """Returns the buffers that one nest writes and a later one reads."""
    written: set[SSAValue] = set()
    passed: set[SSAValue] = set()
    for n in nests:
        reads = n.loaded() | {r.buffer for s in n.stages for r in s.reads if isinstance(r, ElementAccess)}
        passed |= reads & written
        written |= {w.buffer for s in n.stages for w in s.writes}
    return passed


def _separate(nests: list[Nest], buffers: Iterable[SSAValue], length: int) -> bool:
    """Returns whether iteration (d0 .. d[length-1]) accesses only its own slice of each buffer, in every nest."""
    wanted = set(buffers)
    for n in nests:
        for a in n.accesses():
            if a.buffer not in wanted:
                continue
            shape = shape_of(a.buffer.type)
            strides = index_strides(a.buffer.type)
            if len(shape) < length or a.guards:
                return False
            for i in range(length):
                extent = n.dims[i].extent
                if shape[i] != extent or (extent != 1 and a.index.coeff(i) != strides[i]) or a.index.nonlinear_in(i):
                    return False
            span = index_range(without_prefix(a, length).index, full_ranges(n.dims))
            if span is None or not at_least(span[0], 0) or not at_least(strides[length - 1] - 1, span[1]):
                return False
    return True


def without_prefix(a: ElementAccess, length: int) -> ElementAccess:
    """Returns ``a`` with its index relative to the start of one iteration of the first ``length`` loops."""
    coeffs = {d: c for d, c in a.index.coeffs.items() if d >= length}
    return replace(a, index=Linear(a.index.const, coeffs, a.index.rest))


def shrink(nest: Nest, temporaries: set[SSAValue], length: int) -> Nest:
    """Returns ``nest`` whose accesses to ``temporaries`` are relative to one iteration of the first ``length`` loops.

    Each temporary then needs the memory of one iteration only.
    """
    stages = [
        replace(
            s,
            reads=tuple(
                without_prefix(r, length) if isinstance(r, ElementAccess) and r.buffer in temporaries else r
                for r in s.reads
            ),
            writes=tuple(without_prefix(w, length) if w.buffer in temporaries else w for w in s.writes),
        )
        for s in nest.stages
    ]
    return Nest(nest.dims, stages, nest.bounds)
