"""Broadcasting in a graph: the common shape of operands, and copies of operands that repeat along open axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap

from landbridge.executable.parts import SizeGuard
from landbridge.ir.graph_builder import GraphBuilder
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.types import dtype_of, shape_of
from landbridge.sizes.broadcast import broadcast_shapes, legal_extent, repeats
from landbridge.sizes.replaced import with_atoms
from landbridge.sizes.size import Extent, Size, same, undecided
from landbridge.sizes.terms import AboveZero, atoms


def broadcast_shape(
    g: GraphBuilder, shapes: Sequence[Sequence[Extent]], constants: Sequence[bool]
) -> tuple[Extent, ...]:
    """Returns the shape that operands of ``shapes`` broadcast to, as ``broadcast_shapes`` does for this program.

    An axis of a constant (``constants`` says which operands are constants) decides the extent: a dimension that meets
    it takes its length, because the weights of a layer do not repeat. Raises as ``broadcast_shapes``.
    """
    known = broadcast_shapes(*(shape for shape, is_constant in zip(shapes, constants, strict=True) if is_constant))
    for shape in shapes:
        for extent, number in zip(reversed(shape), reversed(known), strict=False):
            if isinstance(extent, Size) and number != 1 and same(extent, number) is None:
                raise undecided(f"{g.node}: {extent} == {number}", extent, number, equal=True, needed=True)
    found = broadcast_shapes(*shapes, either=g.broadcasting.either)
    return tuple(_known(g, extent, shapes) for extent in found) if g.broadcasting.either else found


def _known(g: GraphBuilder, extent: Extent, shapes: Sequence[Sequence[Extent]]) -> Extent:
    """Returns ``extent`` of a result, replaced by the operand's extent if it is known to equal that; records unknown
    ones."""
    if not isinstance(extent, Size) or any(extent == each for shape in shapes for each in shape):
        return extent
    extent = with_atoms(extent.terms, g.broadcasting.known)
    if isinstance(extent, Size):
        g.broadcasting.created.update(atom for atom in atoms(extent.terms) if isinstance(atom, AboveZero))
    return extent


def repeated(g: GraphBuilder, value: SSAValue, shape: Sequence[Extent], subject: str) -> SSAValue:
    """Returns ``value`` repeated along the axes that are 1 in some runs where ``shape`` has more.

    ``shape`` is what it broadcasts to. Axes that are 1 in all runs stay. A run is refused in which an extent of
    ``subject`` is neither 1 nor that of ``shape``. Returns ``value`` itself if there is no such axis.
    """
    source_shape = shape_of(value.type)
    lead = len(shape) - len(source_shape)
    axes = [a for a, extent in enumerate(source_shape) if repeats(extent, shape[lead + a])]
    if not axes:
        return value
    g.broadcasting.found_any = True
    for a in axes:
        legal = legal_extent(source_shape[a], shape[lead + a])
        g.guards.append(
            SizeGuard(f"{g.node}: axis {a} of {subject}, which broadcasts,", source_shape[a], cast(int, legal))
        )
    wanted = [shape[lead + a] if a in axes else extent for a, extent in enumerate(source_shape)]

    def build(p: PrimBuilder) -> None:
        def element(s: ScalarBuilder) -> Value:
            at = [s.index(a) for a in range(len(source_shape))]
            for a in axes:
                at[a] = s.minimum(at[a], s.const(source_shape[a] - 1, "index"))
            return s.load(p.inputs[0], at, dtype_of(value.type))

        p.generic("p" * len(source_shape), wanted, [], [(p.outputs[0], AffineMap.identity(len(source_shape)))], element)

    return g.call("repeat", [value], [(wanted, dtype_of(value.type))], build)[0]
