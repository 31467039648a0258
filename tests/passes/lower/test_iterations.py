"""Stages that are iterated, against numpy: each iteration reads what the one before it wrote."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import arith, linalg
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.utils.exceptions import VerifyException

from landbridge.ir.plain_attributes import int_attr
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.prim_ops import StepsOp
from landbridge.ir.stages import view_prim
from landbridge.ir.types import tensor_type

from .kernels import Array, run_prim

TARGETS = [
    "llvm",
    "llvm -mcpu=haswell",
    "llvm -mcpu=generic",
    "c",
    "c -mcpu=generic -cflags=-DLB_PORTABLE,-O1",
    "opencl",
    "opencl -device-class=cpu -vector-bits=512 -vector-registers=32",
]
RNG = np.random.default_rng(5)


def powers(p: PrimBuilder, steps: int, n: int, k: int) -> None:
    """``s = x[t] + s @ m`` from ``s = first``, each ``s`` written to ``all[steps - 1 - t]``; then ``last = 2 s``."""
    x, m, first = p.inputs
    everything, state, product, last = p.outputs

    def iteration(x: SSAValue, m: SSAValue, everything: SSAValue, state: SSAValue, product: SSAValue) -> None:
        p.generic(
            "pppr",
            (steps, n, k, k),
            [(state, lambda t, i, j, r: [i, r]), (m, lambda t, i, j, r: [r, j])],
            [(product, lambda t, i, j, r: [i, j])],
            lambda s, acc, a, b: acc + a * b,
            init=0,
        )
        p.generic(
            "ppp",
            (steps, n, k),
            [(x, lambda t, i, j: [t, i, j]), (product, lambda t, i, j: [i, j])],
            [(state, lambda t, i, j: [i, j]), (everything, lambda t, i, j: [AffineExpr.constant(steps - 1) - t, i, j])],
            lambda s, a, b: [a + b, a + b],
        )

    def same(i: object, j: object) -> list[object]:
        return [i, j]

    p.generic("pp", (n, k), [(first, same)], [(state, same)], lambda s, v: v)
    p.steps(steps, [x, m, everything, state, product], iteration)
    p.generic("pp", (n, k), [(state, same)], [(last, same)], lambda s, v: v + v)


def reference(x: Array, m: Array, first: Array) -> list[Array]:
    state, found = first.astype(np.float64), []
    for each in x:
        state = each + state @ m
        found.append(state)
    return [np.array(found[::-1]), state, 2 * state]


@pytest.mark.sample(6)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("steps,n,k", [(1, 1, 1), (4, 1, 33), (3, 5, 64), (9, 2, 20), (2, 17, 100)])
def test_each_iteration_reads_the_one_before(steps: int, n: int, k: int, target: str) -> None:
    x, first = (RNG.standard_normal(s, np.float32) for s in ((steps, n, k), (n, k)))
    m = np.float32(0.5) * RNG.standard_normal((k, k), np.float32) / np.float32(k**0.5)
    shapes = [(steps, n, k), (n, k), (n, k), (n, k)]
    found = run_prim(lambda p: powers(p, steps, n, k), [x, m, first], [(s, "float32") for s in shapes], target)
    # Sums of k products, steps times: each iteration halves what came before.
    for a, b in zip([found[0], found[1], found[3]], reference(x, m, first), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=4 * 2.0**-23 * (k + steps) ** 0.5 * float(np.abs(b).max()))


def built() -> tuple[PrimBuilder, StepsOp]:
    types = [tensor_type(s, "float32") for s in ((3, 2, 4), (4, 4), (2, 4))]
    p = PrimBuilder("f", types, [tensor_type(s, "float32") for s in ((3, 2, 4), (2, 4), (2, 4), (2, 4))])
    powers(p, 3, 2, 4)
    (steps,) = (op for op in view_prim(p.finish()).stages if isinstance(op, StepsOp))
    return p, steps


def test_the_verifier_knows_iterations() -> None:
    _, steps = built()
    steps.verify_()
    steps.attributes["count"] = int_attr(4)
    with pytest.raises(VerifyException, match="begins with a loop of 4 iterations"):
        steps.verify_()


def test_only_stages_are_iterated() -> None:
    _, steps = built()
    block = steps.body.block
    first = block.first_op
    assert isinstance(first, arith.ConstantOp | linalg.ops.FillOp)
    block.insert_op_before(StepsOp(1, [], steps.body.clone()), first)
    with pytest.raises(VerifyException, match=r"lb\.steps is not a stage of lb.steps"):
        steps.verify_()


def test_the_types_of_buffers_are_those_inside() -> None:
    _, steps = built()
    steps.operands = [*steps.operands[1:], steps.operands[0]]
    with pytest.raises(VerifyException, match="not of the types of its buffers"):
        steps.verify_()
