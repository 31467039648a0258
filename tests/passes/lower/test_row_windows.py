"""Pools whose rows share what they read; ``test_windows.py`` has their numbers."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from xdsl.dialects import arith, func, scf, vector

import landbridge as lb
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.types import tensor_type
from landbridge.passes.lower import lowering_for
from landbridge.targets import Target


def largest(height: int, width: int, stride: int) -> func.FuncOp:
    """Maxima of windows of 3 x 3, lowered for vectors of 8 lanes."""
    rows = (height - 3) // stride + 1
    shapes = [(height, width), (rows, width - 2)]
    p = PrimBuilder("kernel", *([tensor_type(shape, "float32")] for shape in shapes))
    p.generic(
        "pprr",
        (*shapes[1], 3, 3),
        [(p.inputs[0], lambda i, j, a, b: [i * stride + a, j + b])],
        [(p.outputs[0], lambda i, j, a, b: [i, j])],
        lambda s, acc, v: s.maximum(acc, v),
        init=-np.inf,
    )
    return lowering_for(Target("llvm -vector-bits=256 -vector-registers=16"))(p.finish())


@pytest.mark.parametrize("stride", [1, 2])
def test_each_row_is_read_and_folded_once(stride: int) -> None:
    lowered = largest(64 * stride + 3, 34, stride)
    tiles = [op for op in lowered.walk() if isinstance(op, scf.ForOp) and not any(map(holds_loops, op.body.ops))]
    tile = max(tiles, key=lambda op: sum(isinstance(each, vector.StoreOp) for each in op.body.ops))
    count = {kind: sum(isinstance(op, kind) for op in tile.body.walk()) for kind in (vector.StoreOp, vector.LoadOp)}
    stored, loaded = count[vector.StoreOp], count[vector.LoadOp]
    maxima = sum(isinstance(op, arith.MaximumfOp) for op in tile.body.walk())
    read = (stored - 1) * stride + 3
    assert stored > 3
    assert (loaded, maxima) == (3 * read, 2 * read + 3 * stored)


def holds_loops(op: object) -> bool:
    return isinstance(op, scf.ForOp)


@pytest.mark.parametrize("size", [(5, 5), (9, 40), (31, 17)])
def test_sums_of_equal_windows_are_equal(size: tuple[int, int]) -> None:
    x, y = (
        helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", (1, 2, *size)), ("y", [None] * 4))
    )
    node = helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[3, 5])
    graph = helper.make_graph([node], "pool", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (found,) = lb.Session(lb.compile(model))(np.full((1, 2, *size), 0.1, np.float32))
    assert len(np.unique(np.asarray(found))) == 1
