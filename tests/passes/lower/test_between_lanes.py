"""Filters that keep some samples: iterations share the vectors of all samples, and read none that is not theirs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import VectorType

from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.types import tensor_type
from landbridge.passes.lower.prims import lower_prim
from landbridge.passes.lower.schedule import VectorUnit

from .kernels import run_prim

WIDE = VectorUnit(64, 32, l1_bytes=1 << 15, prefetches=True, unrolls=True)


def filtered(p: PrimBuilder, retained: int, taps: int, step: int) -> None:
    """``y[n] = sum(x[step * n + t] * w[t])`` of as many samples as that takes."""
    p.generic(
        "pr",
        [retained, taps],
        [(p.inputs[0], lambda n, t: (n * step + t,)), (p.inputs[1], lambda n, t: (t,))],
        [(p.outputs[0], lambda n, t: (n,))],
        lambda s, acc, a, b: acc + a * b,
        init=0.0,
    )


def samples(retained: int, taps: int, step: int) -> int:
    return (retained - 1) * step + taps


@given(st.integers(1, 500), st.integers(60, 140), st.integers(1, 5))
@example(192, 256, 2)
@example(193, 67, 2)
@example(48, 64, 4)
@example(100, 66, 3)
def test_results_are_right_and_no_sample_past_the_last_is_read(retained: int, taps: int, step: int) -> None:
    """Lowering raises where it cannot prove that an access lies in its buffer."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal(samples(retained, taps, step), dtype=np.float32)
    w = rng.standard_normal(taps, dtype=np.float32)
    (y,) = run_prim(lambda p: filtered(p, retained, taps, step), [x, w], [((retained,), "float32")])
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), taps)[::step]
    # of sums in any order (Higham, "The accuracy of floating point summation", 1993, 3.4)
    assert (abs(y - windows @ w) <= 2.0**-24 * taps * (abs(windows) @ abs(w))).all()


@pytest.mark.parametrize(("step", "taps", "shared"), [(2, 256, True), (4, 256, True), (3, 255, True), (2, 16, False)])
def test_a_vector_of_samples_is_loaded_once_for_all_iterations_that_read_of_it(
    step: int, taps: int, *, shared: bool
) -> None:
    retained = 16 * 12
    types = [tensor_type(shape, "float32") for shape in ((samples(retained, taps, step),), (taps,), (retained,))]
    prim = PrimBuilder("kernel", types[:2], types[2:])
    filtered(prim, retained, taps, step)
    ops = list(lower_prim(prim.finish(), WIDE).walk())
    loads = sum(isinstance(op, vector.LoadOp) for op in ops)
    products = sum(isinstance(op, arith.MulfOp) and isinstance(op.result.type, VectorType) for op in ops)
    assert products and (loads <= products) is shared
