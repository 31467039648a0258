"""Products of tensors summed over labels that their result lacks, as loop nests: in pairs where that is less work than
one nest over all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from landbridge.ir.prim_builder import Access, PrimBuilder
from landbridge.ir.scalar_dtypes import accumulator
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.contraction_order import contracted, contraction_order
from landbridge.records import record
from landbridge.sizes.size import Extent, same


@record(frozen=True, eq=False)
class Labelled:
    """An operand with a label for each of its axes."""

    operand: Operand
    labels: tuple[str, ...]


def contract(
    c: OpContext, terms: Sequence[Labelled], retained: Sequence[str], extents: Mapping[str, Extent]
) -> Operand:
    """Computes the sum over all labels but ``retained`` of the product of ``terms``, in the dtype of the first:
    [*kept].

    ``extents``: of each label; an operand may have 1 there, which is read for all of them.
    """
    dtype, left = c.dtype(terms[0].operand), list(terms)
    if len(left) > 1:
        left = [_without_broadcast(c, t, extents) for t in left]
        left = [_alone(c, t, [*left[:i], *left[i + 1 :]], retained, extents) for i, t in enumerate(left)]
    sizes = {label: c.g.expected(extent) for label, extent in extents.items()}
    for pair in contraction_order([t.labels for t in left], retained, sizes)[:-1]:
        created = contracted([t.labels for t in left], retained, pair)
        first, second = (left[i] for i in pair)
        labels = _order(first.labels, second.labels, created)
        result = _nest(c, (first, second), labels, extents, accumulator(dtype))
        left = [t for i, t in enumerate(left) if i not in pair] + [Labelled(result, labels)]
    return _nest(c, left, retained, extents, dtype)


def _without_broadcast(c: OpContext, term: Labelled, extents: Mapping[str, Extent]) -> Labelled:
    """Returns ``term`` without the axes of which it has one element for all."""
    shape = c.shape(term.operand)
    pairs = [(v, e) for v, e in zip(term.labels, shape, strict=True) if e != 1 or same(extents[v], 1) is True]
    if len(pairs) == len(shape):
        return term
    return Labelled(c.reshape(term.operand, [e for _, e in pairs]), tuple(v for v, _ in pairs))


def _alone(
    c: OpContext, term: Labelled, others: Sequence[Labelled], retained: Collection[str], extents: Mapping[str, Extent]
) -> Labelled:
    """Reduces ``term`` to one axis for each label, summed over those that neither ``others`` nor the result have."""
    needed = set(retained).union(*(t.labels for t in others))
    labels = tuple(v for v in dict.fromkeys(term.labels) if v in needed)
    if labels == term.labels:
        return term
    return Labelled(_nest(c, [term], labels, extents, accumulator(c.dtype(term.operand))), labels)


def _order(first: Sequence[str], second: Sequence[str], created: Collection[str]) -> tuple[str, ...]:
    """Orders the labels ``created`` of a product: those of an operand whose last axis is among them come last, for
    vectors.
    """
    both = [v for v in first if v in second and v in created]
    parts = [[v for v in owned if v in created and v not in both] for owned in (first, second)]
    if parts[0] and first[-1] == parts[0][-1] and not (parts[1] and second[-1] == parts[1][-1]):
        parts.reverse()
    return (*both, *parts[0], *parts[1])


def _nest(
    c: OpContext, terms: Sequence[Labelled], retained: Sequence[str], extents: Mapping[str, Extent], dtype: str
) -> Operand:
    """Returns one nest whose loops are the labels."""
    found = dict.fromkeys(v for t in terms for v in t.labels)
    summed = [v for v in found if v not in retained]
    loops = {label: i for i, label in enumerate([*retained, *summed])}

    def access(term: Labelled) -> Any:
        shape = c.shape(term.operand)
        return lambda *d: [
            0 if e == 1 and extents[v] != 1 else d[loops[v]] for v, e in zip(term.labels, shape, strict=True)
        ]

    def product(s: ScalarBuilder, *values: Value) -> Value:
        rest = values[1:] if summed else values
        result = rest[0]
        for value in rest[1:]:
            result = result * value
        return values[0] + result if summed else result

    def build(p: PrimBuilder) -> None:
        ins: list[Access] = [(b, access(t)) for b, t in zip(p.inputs, terms, strict=True)]
        out: Access = (p.outputs[0], lambda *d: d[: len(retained)])
        p.generic("p" * len(retained) + "r" * len(summed), [extents[v] for v in loops], ins, [out], product, init=0)

    result = [extents[v] for v in retained]
    return c.g.call("einsum", [c.value(t.operand) for t in terms], [(result, dtype)], build)[0]
