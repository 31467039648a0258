"""Compiled integer division of every width ends no process: by 0, and of the lowest integer by -1."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, numpy_helper

import landbridge as lb
from tests.witnesses.guard_pages import in_child

DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def check_division(dtype: str, target: str, live: bool) -> None:
    """Every pair of edge values, in vectors and behind them, the divisors as an input or as a constant."""
    info = np.iinfo(dtype)
    edges = sorted({info.min, max(info.min, -1), 0, 1, 7, info.max})
    pairs = np.array([(a, b) for a in edges for b in edges] * 3, dtype)
    x, y = np.ascontiguousarray(pairs.T)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    names = {"q": ("Div", {}), "r": ("Mod", {"fmod": 1}), "m": ("Mod", {})}
    nodes = [helper.make_node(op, ["x", "y"], [name], **attributes) for name, (op, attributes) in names.items()]
    inputs = [helper.make_tensor_value_info(name, kind, x.shape) for name in ("x", "y")[: 1 + live]]
    outputs = [helper.make_tensor_value_info(name, kind, x.shape) for name in names]
    constants = [] if live else [numpy_helper.from_array(y, "y")]
    graph = helper.make_graph(nodes, "division", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    results = lb.Session(lb.compile(model, target))(*(x, y)[: 1 + live])
    quotients, rests, moduli = (np.asarray(result) for result in results)
    for a, b, q, r, m in zip(*(v.tolist() for v in (x, y, quotients, rests, moduli)), strict=True):
        if b:  # by 0 there is a result, but none is the right one
            exact = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            assert q == (exact if exact <= info.max else info.min), f"{a} / {b}"
            assert (r, m) == (abs(a) % abs(b) * (-1 if a < 0 else 1), a % b), f"{a} mod {b}"


@pytest.mark.sample(4)
@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_division_of_every_edge(dtype: str, target: str, live: bool) -> None:
    in_child(check_division, dtype, target, live)
