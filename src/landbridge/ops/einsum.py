"""Einsum: parses its equation to labels of the axes of the operands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from landbridge.errors import ShapeError
from landbridge.ir.broadcasting import broadcast_shape
from landbridge.operators import kernel
from landbridge.ops.accuracy import SUMS, accuracy
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.contractions import Labelled, contract
from landbridge.ops.legal import matches
from landbridge.ops.rules import rules
from landbridge.sizes.size import must_agree

_TERM = r"[A-Za-z ]*(\.\.\.)?[A-Za-z ]*"


@rules(
    "*Inputs: ...",
    attributes={
        "equation": matches(f"{_TERM}(,{_TERM})*(->{_TERM})?", "terms of letters, one '...' in each, as in 'ij,jk->ik'")
    },
)
@kernel("", "Einsum")
@accuracy(SUMS)
def einsum(c: OpContext, *operands: Operand) -> Operand:
    """Computes the sum over labels that the result lacks of the product of the operands."""
    equation = c.attribute("equation").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise ShapeError(f"{c.g.node}: equation {equation!r} has {len(terms)} terms for {len(operands)} operands")
    ranks = [c.rank(x) - len(t.replace("...", "")) for t, x in zip(terms, operands, strict=True)]
    if any(r < 0 for t, r in zip(terms, ranks, strict=True)):
        raise ShapeError(f"{c.g.node}: the terms of {equation!r} are of other ranks than the operands")
    dots = [str(i) for i in range(max((r for t, r in zip(terms, ranks, strict=True) if "..." in t), default=0))]
    labels = [_labels(t, dots[len(dots) - r :] if "..." in t else []) for t, r in zip(terms, ranks, strict=True)]
    if arrow:
        retained = _labels(right, dots)
    else:
        every = [v for term in labels for v in term if v not in dots]
        retained = dots + sorted(v for v in set(every) if every.count(v) == 1)
    known = {v for term in labels for v in term}
    if any(len(term) != c.rank(x) for term, x in zip(labels, operands, strict=True)):
        raise ShapeError(f"{c.g.node}: the terms of {equation!r} are of other ranks than the operands")
    if len(set(retained)) != len(retained) or not known.issuperset(retained):
        raise ShapeError(
            f"{c.g.node}: the result of {equation!r} has {retained}; each label of the operands is legal once"
        )
    given = _with_shared_dots(c, operands, labels, dots)
    extents: dict[str, int] = {}
    for term, x in zip(labels, given, strict=True):
        for label, extent in zip(term, c.shape(x), strict=True):
            if extents.setdefault(label, extent) == 1:
                extents[label] = extent
            subject = f"{c.g.node}: label {label!r} of {equation!r}"
            if extent != 1 and not must_agree(subject, extents[label], extent):
                raise ShapeError(f"{subject} is {extents[label]} and {extent}")
    return contract(c, [Labelled(x, tuple(t)) for x, t in zip(given, labels, strict=True)], retained, extents)


def _with_shared_dots(
    c: OpContext, operands: Sequence[Operand], labels: Sequence[Sequence[str]], dots: Sequence[str]
) -> list[Operand]:
    """Returns the operands, whose axes of an ellipsis broadcast together: those repeated that may be 1 in a run."""
    of_dots = [
        tuple(e for e, v in zip(c.shape(x), t, strict=True) if v in dots) for x, t in zip(operands, labels, strict=True)
    ]
    try:
        shared = broadcast_shape(c.g, of_dots, [isinstance(x, np.ndarray) for x in operands])
    except ValueError as error:
        raise ShapeError(f"{c.g.node}: the axes of '...' are {', '.join(map(str, of_dots))}: {error}") from error
    extent_of = dict(zip(dots[len(dots) - len(shared) :], shared, strict=True))
    wanted = [
        [extent_of.get(v, e) for e, v in zip(c.shape(x), t, strict=True)] for x, t in zip(operands, labels, strict=True)
    ]
    return [c.repeated(x, shape, f"operand {i}") for i, (x, shape) in enumerate(zip(operands, wanted, strict=True))]


def _labels(term: str, dots: list[str]) -> list[str]:
    """Returns the labels of a term, with an ellipsis replaced by separate labels."""
    before, ellipsis, after = term.partition("...")
    return [*before, *(dots if ellipsis else []), *after]
