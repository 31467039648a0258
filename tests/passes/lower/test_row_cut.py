"""How rows may be cut into tiles."""

from __future__ import annotations

import pytest

from landbridge.passes.lower.row_cut import RowCut
from landbridge.sizes.size import Extent, dimension


@pytest.mark.parametrize(
    ("extent", "most"),
    [(dimension("T"), 36), (dimension("T", expected=8), -4), (dimension("T") * 9, 60), (8, -4)],
)
def test_rows_that_padding_surrounds_are_more_than_it(extent: Extent, most: int) -> None:
    """Of eight rows none has 12 without padding on both sides: where nobody says that they are so few, four times as
    many are there, and tiles may have what is left."""
    cut = RowCut(extent, overlaps=True, margin=12)
    assert cut.most == most
    assert all(rows == 6 for rows, _ in cut.pieces(6)) or isinstance(extent, int)


def test_without_padding_a_expected_number_counts() -> None:
    cut = RowCut(dimension("T"), overlaps=True)
    assert cut.most == 8
    assert cut.pieces(4) == [(4, 2)]
