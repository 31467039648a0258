"""Sizes in affine maps: constants that are known only at run time, ``(d0, d1) -> (d0 * [W/4] + d1)``."""

from __future__ import annotations

from xdsl.ir.affine import AffineConstantExpr, AffineExpr

from landbridge.records import record
from landbridge.sizes.size import Extent, Size


@record(frozen=True)
class SizeExpr(AffineConstantExpr):
    """A Size in place of a constant; printed in brackets, as in types."""

    def __str__(self) -> str:
        return f"[{self.value}]"


def extent_expr(extent: Extent) -> AffineExpr:
    """Returns ``extent`` as an affine expression."""
    return SizeExpr(extent) if isinstance(extent, Size) else AffineExpr.constant(extent)  # type: ignore[arg-type]
