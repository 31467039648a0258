"""Running folds against numpy: lanes along the elements or along the iterations, either way round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

import landbridge as lb
from landbridge.dtypes import dtype_name
from landbridge.ir.module import IRModule
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.stages import view_prim
from landbridge.ir.types import tensor_type
from landbridge.passes.lower.scan import scan_nest

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
FOLDS = {"add": np.add, "mul": np.multiply, "max": np.maximum}
NEUTRAL = {"add": 0, "mul": 1, "max": -100}
RNG = np.random.default_rng(7)


def running(p: PrimBuilder, shape: tuple[int, ...], axis: int, fold: str, exclusive: bool, back: bool) -> None:
    """``y`` [shape] and the last ``state`` of folding ``x`` along ``axis``."""
    dtype, others = p.dtype(p.inputs[0]), [*shape[:axis], *shape[axis + 1 :]]
    elements, iterations = "p" * len(others), shape[axis]

    def place(t: Any, *d: Any) -> list[Any]:
        return [*d[:axis], AffineExpr.constant(iterations - 1) - t if back else t, *d[axis:]]

    def body(s: ScalarBuilder, v: Value, before: Value) -> list[Value]:
        after = s.maximum(before, v) if fold == "max" else s.binary(fold, before, v)
        return [before if exclusive else after, after]

    def iteration(x: SSAValue, y: SSAValue, state: SSAValue) -> None:
        owned = (state, lambda t, *d: d)
        p.generic("p" + elements, [iterations, *others], [(x, place), owned], [(y, place), owned], body)

    p.generic(elements, others, [], [(p.outputs[1], lambda *d: d)], lambda s: s.const(NEUTRAL[fold], dtype))
    p.steps(iterations, [p.inputs[0], *p.outputs], iteration)


def reference(x: Array, axis: int, fold: str, exclusive: bool, back: bool) -> list[Array]:
    found, state = [], np.full_like(x.take(0, axis), NEUTRAL[fold])
    for t in reversed(range(x.shape[axis])) if back else range(x.shape[axis]):
        after = FOLDS[fold](state, x.take(t, axis))
        found.append(state if exclusive else after)
        state = after
    return [np.stack(found[::-1] if back else found, axis), state]


@pytest.mark.sample(14)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("shape,axis", [((3, 37), 1), ((2, 16), 1), ((37, 3), 0), ((2, 9, 40), 1), ((1, 5), 1)])
def test_each_iteration_continues_the_fold(
    shape: tuple[int, ...], axis: int, fold: str, exclusive: bool, back: bool, target: str
) -> None:
    # Small numbers, of which sums and products are exact in whatever order they are taken.
    x = RNG.choice([-1, 1, 2] if fold != "mul" else [-1, 1], shape).astype(np.float32)
    others = (*shape[:axis], *shape[axis + 1 :])
    found = run_prim(
        lambda p: running(p, shape, axis, fold, exclusive, back), [x], [(shape, "float32"), (others, "float32")], target
    )
    for a, b in zip(found, reference(x, axis, fold, exclusive, back), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", [np.int64, np.uint32])
@pytest.mark.parametrize("axis", [0, 1])
def test_integers_wrap_around(axis: int, dtype: Any) -> None:
    x = RNG.integers(0, np.iinfo(dtype).max, (21, 35)).astype(dtype)
    name = dtype_name(x.dtype)
    found = run_prim(
        lambda p: running(p, (21, 35), axis, "add", False, False),
        [x],
        [((21, 35), name), ((56 - x.shape[axis],), name)],
    )
    for a, b in zip(found, reference(x, axis, "add", False, False), strict=True):
        np.testing.assert_array_equal(a, b)


def summing(shape: tuple[int | str, ...], dtype: int, axis: int, **attributes: int) -> IRModule:
    x, y = (helper.make_tensor_value_info(name, dtype, shape) for name in "xy")
    node = helper.make_node("CumSum", ["x", "axis"], ["y"], **attributes)
    graph = helper.make_graph([node], "sums", [x], [y], [numpy_helper.from_array(np.array(axis), "axis")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.sample(5)
@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("shape,axis", [((2, "T"), 1), (("T", 5), 0), ((2, "T", "C"), 1), (("B", 6, "C"), 0)])
def test_open_extents(shape: tuple[int | str, ...], axis: int, reverse: int) -> None:
    session = lb.Session(lb.compile(summing(shape, TensorProto.INT32, axis, reverse=reverse)))
    for sizes in ({"T": 1, "C": 3, "B": 2}, {"T": 50, "C": 40, "B": 9}, {"T": 64, "C": 16, "B": 1}):
        x = RNG.integers(-9, 9, [sizes.get(e, e) for e in shape]).astype(np.int32)  # type: ignore[call-overload]
        want = np.flip(np.flip(x, axis).cumsum(axis), axis) if reverse else x.cumsum(axis)
        np.testing.assert_array_equal(np.asarray(session(x)[0]), want)


def test_half_precision_is_rounded_once() -> None:
    x = np.full((2, 3000), 1.0, np.float16)
    (y,) = lb.Session(lb.compile(summing(x.shape, TensorProto.FLOAT16, 1)))(x)
    np.testing.assert_array_equal(np.asarray(y), np.arange(1, 3001).astype(np.float16)[None].repeat(2, 0))


def test_iterations_that_read_more_than_their_own_element_are_no_fold() -> None:
    p = PrimBuilder("kernel", [tensor_type((4, 8), "float32")], [tensor_type(s, "float32") for s in ((4, 8), (8,))])
    p.generic("p", [8], [], [(p.outputs[1], lambda i: [i])], lambda s: s.const(0.0, "float32"))

    def iteration(x: SSAValue, y: SSAValue, state: SSAValue) -> None:
        ins = [(x, lambda t, i: [t, i]), (state, lambda t, i: [AffineExpr.constant(7) - i])]
        outs = [(y, lambda t, i: [t, i]), (state, lambda t, i: [i])]
        p.generic("pp", [4, 8], ins, outs, lambda s, v, before: [v + before, v])

    p.steps(4, [p.inputs[0], *p.outputs], iteration)
    assert scan_nest(view_prim(p.finish())) is None
