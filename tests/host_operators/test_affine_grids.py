"""AffineGrid whose size is computed, between kernels, against torch's definition in float64."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import landbridge as lb
from tests.selection.installed import package

pytestmark = pytest.mark.filterwarnings("ignore::landbridge.FallbackWarning")
torch = package("torch", "peers")


@pytest.mark.filterwarnings("ignore:Since version 1.3.0, affine_grid:UserWarning")  # torch, of a lone pixel
@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("spatial", [(3, 5), (2, 4, 3), (4, 1), (1, 1, 2)])
def test_a_size_may_be_computed(corners: int, spatial: tuple[int, ...]) -> None:
    axes = len(spatial)
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["" : 20]>
        g (float[n,{axes},{axes + 1}] theta, int64[{axes + 2}] size) => (float[{",".join("abcde"[: axes + 2])}] y) {{
            positive = Abs(size)
            grid = AffineGrid<align_corners={corners}>(theta, positive)
            y = Neg(grid)
        }}"""
    )
    session = lb.Session(lb.compile(model))
    theta = np.random.default_rng(0).standard_normal((2, axes, axes + 1)).astype(np.float32)
    for each in (spatial, spatial[::-1]):
        size = [2, 2, *each]
        wanted = torch.nn.functional.affine_grid(torch.tensor(theta, dtype=torch.float64), size, bool(corners))
        (found,) = session(theta, np.array(size))
        # Products in float64 of float32 factors, rounded once; sums of up to four of about 10 may cancel.
        np.testing.assert_allclose(found, -wanted.numpy(), rtol=1e-6, atol=1e-6)


def test_a_size_of_another_length_is_refused() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 20]>
        g (float[n,2,3] theta, int64[3] size) => (float[a,b,c] y) {
            double = Add(size, size)
            y = AffineGrid(theta, double)
        }"""
    )
    with pytest.raises(lb.ShapeError, match="size has 3 elements; legal: 4"):
        lb.compile(model)
