"""Vectors along a loop that operands follow by steps, or that has padding at its ends, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.types import tensor_type
from landbridge.passes.lower import lowering_for
from landbridge.targets import Target

from .kernels import Array, run_prim

RNG = np.random.default_rng(5)


def pooled(p: PrimBuilder, rows: int, out: int, taps: int, step: int, low: int, high: int, fill: float) -> None:
    """The largest of ``taps`` elements, of which the first of each is ``step`` after that before."""
    source = p.pad(p.inputs[0], (0, low), (0, high), fill)
    p.generic(
        "ppr",
        [rows, out, taps],
        [(source, lambda c, w, k: (c, w * step + k))],
        [(p.outputs[0], lambda c, w, k: (c, w))],
        lambda s, acc, x: s.maximum(acc, x),
        init=-1e30,
    )


def expected(x: Array, out: int, taps: int, step: int, low: int, high: int, fill: float) -> Array:
    wide = np.pad(x, ((0, 0), (low, high)), constant_values=fill)
    return np.stack([wide[:, i * step : i * step + taps].max(1) for i in range(out)], axis=1)


@settings(max_examples=40)
@given(
    st.integers(1, 70), st.integers(1, 5), st.integers(1, 4), st.integers(0, 3), st.integers(0, 3), st.integers(1, 9),
    st.sampled_from([-1e30, 0.0]),
    st.sampled_from(["llvm", "llvm -mcpu=haswell", "llvm -mcpu=generic", "c -mcpu=generic -cflags=-O1"]),
)  # fmt: skip
def test_steps_and_padding(
    width: int, taps: int, step: int, low: int, high: int, rows: int, fill: float, target: str
) -> None:
    capacity = width + low + high - taps
    if capacity < 0:
        return
    out = capacity // step + 1
    high = max(0, (out - 1) * step + taps - width - low)
    x = RNG.standard_normal((rows, width), dtype=np.float32)
    shape: Any = ((rows, out), "float32")
    (found,) = run_prim(lambda p: pooled(p, rows, out, taps, step, low, high, fill), [x], [shape], target)
    assert (found == expected(x, out, taps, step, low, high, fill)).all()


@pytest.mark.parametrize("out", [2, 3, 4, 5, 8, 17])
@pytest.mark.parametrize("step", [2, 3, 4])
def test_the_operand_ends_with_the_last_lane(out: int, step: int) -> None:
    width = (out - 1) * step + 1
    x = RNG.standard_normal((2, width), dtype=np.float32)
    (found,) = run_prim(lambda p: pooled(p, 2, out, 1, step, 0, 0, 0.0), [x], [((2, out), "float32")])
    assert (found == x[:, ::step]).all()


@pytest.mark.parametrize("step,pad", [(2, 0), (1, 1), (3, 1)])
def test_they_are_vectors(step: int, pad: int) -> None:
    """No element is loaded by itself."""
    out = (64 + 2 * pad - 3) // step + 1
    prim = PrimBuilder("kernel", [tensor_type((4, 64), "float32")], [tensor_type((4, out), "float32")])
    pooled(prim, 4, out, 3, step, pad, pad, -1e30)
    names = {op.name for op in lowering_for(Target("llvm -mcpu=x86-64-v4"))(prim.finish()).walk()}
    assert "vector.load" in names and "memref.load" not in names
    assert "vector.maskedload" in names or not pad
