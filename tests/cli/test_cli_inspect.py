"""``landbridge inspect``: what is said of a model is what it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from landbridge.package_version import package_version
from tests.cli.command_line import invoke

ADD = Path(__file__).with_name("add.mlir")


def model(folder: Path, last: str = "Relu") -> Path:
    """Two convolutions 1x1, over any width, and what follows them."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("Conv", ["a", "v"], ["b"]),
        helper.make_node(last, ["b"], ["y"], domain="" if last == "Relu" else "own"),
    ]
    weights = [numpy_helper.from_array(np.ones((4, c, 1, 1), np.float32), n) for n, c in (("w", 3), ("v", 4))]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 5, "W"))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 4, 5, "W"))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    made = helper.make_model(helper.make_graph(nodes, "net", [x], [y], weights), opset_imports=opsets, ir_version=8)
    file = folder / "net.onnx"
    file.write_bytes(made.SerializeToString())
    return file


def inspected(*words: object) -> Any:
    done = invoke(["inspect", *map(str, words), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_of_a_model(tmp_path: Path) -> None:
    file = model(tmp_path)
    found = inspected(file, "--at", "W=7")
    assert found["bytes"] == file.stat().st_size
    assert [(o["name"], o["count"], o["supported"]) for o in found["operators"]] == [
        ("Conv", 2, True),
        ("Relu", 1, True),
    ]
    assert (found["parameters"], found["weight_bytes"]) == (28, 112)
    assert [(t["name"], t["dtype"]) for t in found["inputs"] + found["outputs"]] == [("x", "float32"), ("y", "float32")]
    assert (found["dimensions"]["W"]["low"], found["at"]) == (1, {"W": 7})
    multiply_adds = 5 * 7 * (4 * 3 + 4 * 4)
    assert 2 * multiply_adds <= found["flops"] <= 2 * multiply_adds + 4 * 4 * 5 * 7
    assert found["memory"][0]["device"] == "cpu"


def test_of_what_was_compiled(tmp_path: Path) -> None:
    file = model(tmp_path)
    assert invoke(["compile", str(file)]).exit_code == 0
    lbx, onnx = inspected(file.with_suffix(".lbx"), "--at", "W=7"), inspected(file, "--at", "W=7")
    assert "operators" not in lbx and "format" not in onnx
    assert lbx["format"] == int.from_bytes(file.with_suffix(".lbx").read_bytes()[8:12], "little")
    assert lbx["compiled_by"] == onnx["compiled_by"] == package_version("landbridge")
    for same in ("inputs", "outputs", "dimensions", "flops", "kernels", "code_bytes", "memory"):
        assert lbx[same] == onnx[same]
    assert inspected(ADD)["flops"] == 32


def test_of_a_model_that_cannot_be_compiled(tmp_path: Path) -> None:
    found = inspected(model(tmp_path, "Unheard"))
    assert not found["compiles"] and "Unheard" in found["reason"]
    assert [o["name"] for o in found["operators"] if not o["supported"]] == ["Unheard"]
    assert found["inputs"] == [{"name": "x", "shape": [1, 3, 5, "W"], "dtype": "float32"}]


def test_operators_that_compile_are_supported(tmp_path: Path) -> None:
    """Those that ONNX defines by others, one of them by what a node is given, and those done while importing."""
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"]),
        helper.make_node("Celu", ["x"], ["c"]),
        helper.make_node("SequenceConstruct", ["x", "c"], ["pair"]),
        helper.make_node("ConcatFromSequence", ["pair"], ["y"], axis=0),
        helper.make_node("Unheard", ["x"], ["z"], domain="com.example"),
    ]
    kinds = {"x": "FLOAT", "y": "FLOAT", "q": "UINT8"}
    x, y, q = (helper.make_tensor_value_info(n, getattr(TensorProto, t), [None, 3]) for n, t in kinds.items())
    graph = helper.make_graph(nodes, "net", [x], [y, q])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.example", 1)]
    file = tmp_path / "net.onnx"
    file.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())
    found = inspected(file)
    assert [o["name"] for o in found["operators"] if not o["supported"]] == ["Unheard"]


@pytest.mark.parametrize("last", ["Relu", "Unheard"])
def test_tables_fit_80_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = invoke(["inspect", str(model(tmp_path, last))])
    assert done.exit_code == 0
    rows = done.output.splitlines()
    assert any(row.split()[:2] == ["2", "Conv"] for row in rows)
    assert ("NO" in done.output) == (last == "Unheard")
