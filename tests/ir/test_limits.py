"""Limits of a compile: each is kept, says what was found, and leaves nothing behind."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.errors import BudgetError, InputError
from landbridge.ir import limits as limits_module


def model(nodes: int = 3, weight: int = 16) -> ModelProto:
    """``nodes`` additions of ``weight`` floats."""
    names = ["x", *(f"v{number}" for number in range(1, nodes)), "y"]
    made = [helper.make_node("Add", [a, "w"], [b]) for a, b in pairwise(names)]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (weight,)) for name in "xy")
    graph = helper.make_graph(made, "adds", [x], [y], [numpy_helper.from_array(np.ones(weight, np.float32), "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("given", [lb.Limits(bytes=4096, nodes=3, seconds=100), {"nodes": 3}, {}, None])
def test_a_model_within_limits_compiles(given: Any) -> None:
    (y,) = lb.Session(lb.compile(model(), limits=given))(np.zeros(16, np.float32))
    np.testing.assert_array_equal(np.asarray(y), np.full(16, 3, np.float32))


def test_nodes() -> None:
    with pytest.raises(BudgetError, match=r"it may have 2 in all.*allow more in limits="):
        lb.compile(model(), limits=lb.Limits(nodes=2))


def test_bytes_of_a_file_of_bytes_and_of_external_data(tmp_path: Path) -> None:
    content = model(weight=4096).SerializeToString()
    file = tmp_path / "adds.onnx"
    file.write_bytes(content)
    for source in (file, content):
        with pytest.raises(BudgetError, match=r"has 16,\d+ bytes, and limits= allows 9,000"):
            lb.compile(source, limits=lb.Limits(bytes=9000))
    import onnx

    onnx.save(
        model(weight=4096), tmp_path / "apart.onnx", save_as_external_data=True, location="weights", size_threshold=0
    )
    with pytest.raises(BudgetError, match="external data has 16,384 bytes"):
        lb.compile(tmp_path / "apart.onnx", limits=lb.Limits(bytes=9000))


def test_bytes_of_what_is_computed_of_constants() -> None:
    """A few bytes of file that ask for a table of 40 MB."""
    shape = numpy_helper.from_array(np.array([1000, 10000], np.int64), "shape")
    nodes = [helper.make_node("ConstantOfShape", ["shape"], ["w"]), helper.make_node("MatMul", ["x", "w"], ["y"])]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 1000))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 10000))
    graph = helper.make_graph(nodes, "large", [x], [y], [shape])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(lb.CompileError):
        lb.compile(made, limits=lb.Limits(bytes=1 << 20))


def test_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1_000_000, 10))
    monkeypatch.setattr(limits_module.time, "perf_counter", lambda: float(next(clock)))
    with pytest.raises(BudgetError, match="limits= allows 25 seconds"):
        lb.compile(model(), limits=lb.Limits(seconds=25))


def test_what_is_no_mapping_of_limits() -> None:
    for given in ({"byte": 1}, 5, "seconds=1"):
        with pytest.raises(InputError, match=r"limits=.*lb.Limits"):
            lb.compile(model(), limits=given)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [{"bytes": 0}, {"nodes": 1.5}, {"seconds": float("inf")}, {"bytes": True}])
def test_what_is_no_limit(given: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"limits: .* is not legal"):
        lb.Limits(**given)
