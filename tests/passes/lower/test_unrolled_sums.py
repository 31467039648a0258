"""Long sums: iterations of the innermost loop follow each other in its body, and none is left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from xdsl.dialects import arith

from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.types import tensor_type
from landbridge.passes.lower.prims import lower_prim
from landbridge.passes.lower.schedule import VectorUnit

from .kernels import run_prim
from .test_prefetched import HERE, panels

PLAIN = VectorUnit(64, 32)


def products(k: int, machine: VectorUnit) -> int:
    """The multiplications in the code of a product over ``k``, whose 12 rows are tiles of one kind."""
    types = [tensor_type(shape, "float32") for shape in ((12, k), (4, k, 16), (12, 4, 16))]
    prim = PrimBuilder("kernel", types[:2], types[2:])
    panels(prim, 12, 4, k)
    return sum(isinstance(op, arith.MulfOp) for op in lower_prim(prim.finish(), machine).walk())


def test_of_a_long_sum_four_iterations_follow_each_other() -> None:
    unrolling = replace(PLAIN, unrolls=True)
    assert products(512, unrolling) == 4 * products(512, PLAIN)
    # of the first block, the others, and what is left, where there are two loops without
    assert 2 * products(514, unrolling) == (4 + 4 + 1) * products(514, PLAIN)
    assert products(16, unrolling) == products(16, PLAIN)


@pytest.mark.parametrize("k", [64, 67, 194, 1023])
def test_iterations_that_are_left_over_are_added(k: int) -> None:
    rng = np.random.default_rng(5)
    x, w = rng.standard_normal((7, k), dtype=np.float32), rng.standard_normal((3, k, 16), dtype=np.float32)
    (y,) = run_prim(lambda p: panels(p, 7, 3, k), [x, w], [((7, 3, 16), "float32")], HERE)
    wanted = np.einsum("ik,jkc->ijc", x.astype(np.float64), w)
    np.testing.assert_allclose(y, wanted, rtol=0, atol=2.0**-22 * k**0.5 * np.abs(wanted).max())


def test_of_a_short_sum_two_iterations_follow_each_other_and_none_is_left_over() -> None:
    pairing = replace(PLAIN, unrolled=2)
    assert products(16, pairing) == 2 * products(16, PLAIN)
    assert products(15, pairing) == products(15, PLAIN)
