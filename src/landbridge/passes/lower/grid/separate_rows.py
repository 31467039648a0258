"""Rows of iterated stages that are independent: a workgroup can iterate each alone.

The stages of a sort or of a recurrent layer exchange all that they compute through buffers. Where each access to such a
buffer has the number of the row as one index, and always the same one, no row reads what another one writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.dialects import linalg, memref
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr

from landbridge.ir.stages import Generic, PrimView, view_generic
from landbridge.sizes.size import Extent

#: The buffer of an access, and the loop that each of its indices is; None for any other index.
_Access = tuple[SSAValue, list[int | None]]


def separate_rows(prim: PrimView) -> Extent | None:
    """Returns the number of rows of ``prim``: the extent of the first loop of each stage, behind that of iterations.

    None where rows are not independent, or there is but one.
    """
    extents: set[Extent] = set()
    accesses: list[tuple[SSAValue, frozenset[int]]] = []
    written: dict[SSAValue, int] = {}
    for steps, view in prim.sections():
        row = int(steps is not None)
        inside: dict[SSAValue, SSAValue] = {}
        if steps is not None:
            inside.update(zip(steps.body.block.args, steps.buffers, strict=True))
        for stage in view.stages:
            if not isinstance(stage, linalg.ops.GenericOp):
                return None
            generic = view_generic(stage)
            if len(generic.extents) <= row or generic.iterators[row] != "p":
                return None
            extents.add(generic.extents[row])
            for (buffer, loops), is_written in _accesses(generic):
                outer = inside.get(buffer, buffer)
                accesses.append((outer, frozenset(axis for axis, loop in enumerate(loops) if loop == row)))
                written[outer] = written.get(outer, 0) + is_written
    if len(extents) != 1 or 1 in extents or not _are_separate(accesses, written):
        return None
    return extents.pop()


def _are_separate(accesses: list[tuple[SSAValue, frozenset[int]]], written: Mapping[SSAValue, int]) -> bool:
    """Returns whether all accesses to each buffer that is ``written`` have the row as the same index."""
    axes: dict[SSAValue, frozenset[int]] = {}
    for buffer, found in accesses:
        if written[buffer]:
            axes[buffer] = axes.get(buffer, found) & found
    return all(axes.values())


def _accesses(generic: Generic) -> Iterator[tuple[_Access, bool]]:
    """Yields the accesses of ``generic``, each with whether it writes."""
    for operand in (*generic.ins, *generic.outs):
        indices = [e.position if isinstance(e, AffineDimExpr) else None for e in operand.map.results]
        yield (operand.buffer, indices), operand in generic.outs
    for op in generic.body.walk():
        if isinstance(op, memref.LoadOp | memref.StoreOp):
            owners = [value.owner for value in op.indices]
            loops = [each.dim.value.data if isinstance(each, linalg.ops.IndexOp) else None for each in owners]
            yield (op.memref, loops), isinstance(op, memref.StoreOp)
