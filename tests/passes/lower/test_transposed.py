"""Nests whose memory lies along one loop on one side and along another on the other, against numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from xdsl.dialects import vector

import landbridge as lb
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.types import tensor_type
from landbridge.passes.lower import lowering_for
from landbridge.targets import Target

from .kernels import Array, run_prim

TARGETS = [
    "llvm",
    "llvm -mcpu=haswell",
    "llvm -mcpu=generic",
    "c",
    "c -mcpu=generic -cflags=-DLB_PORTABLE,-O1",
    "opencl -device-class=cpu -vector-bits=512 -vector-registers=32",
]
RNG = np.random.default_rng(11)


def values(shape: Sequence[int], dtype: str) -> Array:
    if dtype == "bool":
        return RNG.integers(0, 2, shape).astype(bool)
    return RNG.integers(-100, 100, shape).astype(dtype)


def transpose(p: PrimBuilder, shape: Sequence[int], permutation: Sequence[int]) -> None:
    """The result's axis ``i`` is the operand's axis ``permutation[i]``."""

    def source(*at: Any) -> Any:
        return tuple(at[list(permutation).index(axis)] for axis in range(len(shape)))

    extents = [shape[axis] for axis in permutation]
    p.generic(
        "p" * len(shape),
        extents,
        [(p.inputs[0], source)],
        [(p.outputs[0], lambda *at: at)],
        lambda s, x: x,
    )


def transposed(x: Array, permutation: Sequence[int], target: str = "llvm") -> Array:
    expected = x.transpose(permutation)
    outputs = [(expected.shape, str(x.dtype))]
    (found,) = run_prim(lambda p: transpose(p, x.shape, permutation), [x], outputs, target)
    return found


@pytest.mark.sample(8)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "shape,permutation",
    [
        ((64, 48), (1, 0)),
        ((33, 70), (1, 0)),
        ((5, 3), (1, 0)),
        ((3, 35, 7), (1, 2, 0)),
        ((35, 7, 3), (2, 0, 1)),
        ((4, 33), (1, 0)),
        ((8, 130), (1, 0)),
        ((2, 18, 5, 19), (0, 3, 2, 1)),
        ((2, 18, 5, 19), (3, 1, 2, 0)),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int16"])
def test_transpose(shape: tuple[int, ...], permutation: tuple[int, ...], dtype: str, target: str) -> None:
    x = values(shape, dtype)
    assert (transposed(x, permutation, target) == x.transpose(permutation)).all()


@settings(max_examples=25)
@given(
    st.lists(st.integers(1, 37), min_size=2, max_size=4).flatmap(
        lambda shape: st.tuples(st.just(tuple(shape)), st.permutations(range(len(shape))))
    ),
    st.sampled_from(["float32", "float16", "int64", "int8", "bool"]),
    st.sampled_from(["llvm", "llvm -mcpu=haswell", "llvm -mcpu=generic"]),
)
def test_transpose_of_any_shape(case: tuple[tuple[int, ...], list[int]], dtype: str, target: str) -> None:
    shape, permutation = case
    x = values(shape, dtype)
    assert (transposed(x, permutation, target) == x.transpose(permutation)).all()


@pytest.mark.sample(9)
@pytest.mark.parametrize("target", TARGETS[:3])
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5, 8, 11, 16])
def test_both_sides_meet_in_one_kernel(channels: int, target: str) -> None:
    """A frame becomes planes that are scaled and shifted by channel, beside an operand in planes."""
    frame = RNG.random((9, 13, channels), dtype=np.float32)
    scale = RNG.standard_normal(channels).astype(np.float32)
    more = RNG.standard_normal((channels, 9, 13)).astype(np.float32)

    def build(p: PrimBuilder) -> None:
        p.generic(
            "ppp",
            [channels, 9, 13],
            [
                (p.inputs[0], lambda c, i, j: (i, j, c)),
                (p.inputs[1], lambda c, i, j: (c,)),
                (p.inputs[2], lambda c, i, j: (c, i, j)),
            ],
            [(p.outputs[0], lambda c, i, j: (c, i, j))],
            lambda s, x, a, b: x * a + b,
        )

    (found,) = run_prim(build, [frame, scale, more], [(more.shape, "float32")], target)
    expected = frame.transpose(2, 0, 1) * scale[:, None, None].astype(np.float64) + more
    assert np.abs(found - expected).max() <= 4 * 2.0**-23 * np.abs(expected).max()


@pytest.mark.parametrize("channels", [3, 4, 6, 17])
def test_bytes_become_planes_of_floats(channels: int) -> None:
    """As frames of cameras do: what is transposed are bytes, for lanes of floats."""
    frame = RNG.integers(0, 256, (1, 11, 15, channels)).astype(np.uint8)
    x = helper.make_tensor_value_info("x", TensorProto.UINT8, frame.shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * 4)
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]),
        helper.make_node("Cast", ["t"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "f"], ["y"]),
    ]
    model = helper.make_model(
        helper.make_graph(nodes, "frame", [x], [y]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    (found,) = lb.Session(lb.compile(model))(frame)
    assert (np.asarray(found) == frame.transpose(0, 3, 1, 2).astype(np.float32) ** 2).all()


def test_blocks_are_transposed_in_registers() -> None:
    """No element of whole tiles is loaded or stored by itself."""
    prim = PrimBuilder("kernel", [tensor_type((64, 96), "float32")], [tensor_type((96, 64), "float32")])
    transpose(prim, (64, 96), (1, 0))
    lowered = lowering_for(Target("llvm -mcpu=x86-64-v4"))(prim.finish())
    names = [op.name for op in lowered.walk()]
    assert names.count("vector.load") == names.count("vector.store") == 16
    assert sum(isinstance(op, vector.ShuffleOp) for op in lowered.walk()) == 64
    assert "memref.load" not in names and "memref.store" not in names


@pytest.mark.sample(4)
@pytest.mark.parametrize("permutation", [(0, 2, 3, 1), (0, 3, 1, 2), (3, 2, 1, 0), (0, 1, 3, 2)])
@pytest.mark.parametrize("channels", [3, 20, "C"])
def test_open_extents(permutation: tuple[int, ...], channels: int | str) -> None:
    """One program serves every size, from fewer elements than a vector has on."""
    axes = [1, channels, "H", "W"]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, axes)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * 4)
    node = helper.make_node("Transpose", ["x"], ["y"], perm=permutation)
    model = helper.make_model(
        helper.make_graph([node], "turned", [x], [y]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    session = lb.Session(lb.compile(model))
    for height, width in [(1, 1), (2, 17), (16, 16), (31, 5), (7, 40), (33, 65)]:
        size = (1, channels if isinstance(channels, int) else height + 2, height, width)
        value = RNG.standard_normal(size, dtype=np.float32)
        (found,) = session(value)
        assert (np.asarray(found) == value.transpose(permutation)).all()
