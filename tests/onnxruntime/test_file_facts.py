"""What a file says of itself is the same whether onnx reads it or not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from landbridge.onnxruntime import file_facts
from landbridge.onnxruntime.file_facts import FileFacts
from landbridge.onnxruntime.model_facts import arguments, metadata


def model() -> onnx.ModelProto:
    """A model with every fact: open, named and unknown extents, a weight that is listed as an input, metadata."""
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", None, 3]),
        helper.make_tensor_value_info("w", TensorProto.FLOAT, [3]),
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", None, 3])]
    weights = [numpy_helper.from_array(np.ones(3, np.float32), "w")]
    graph = helper.make_graph([helper.make_node("Mul", ["x", "w"], ["y"])], "scaled", inputs, outputs, weights)
    graph.doc_string = "graph ε"
    created = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    created.producer_name, created.domain, created.model_version, created.doc_string = "p", "d", -3, "doc"
    helper.set_model_props(created, {"classes": "a,b", "empty": ""})
    return created


def read_by_onnx(proto: onnx.ModelProto) -> FileFacts:
    listed = {tensor.name for tensor in proto.graph.initializer}
    return FileFacts(
        tuple(arguments(value for value in proto.graph.input if value.name not in listed)),
        tuple(arguments(value for value in proto.graph.input if value.name in listed)),
        tuple(arguments(proto.graph.output)),
        metadata(proto),
    )


def test_facts_are_those_that_onnx_reads(tmp_path: Path) -> None:
    proto = model()
    onnx.save(proto, tmp_path / "model.onnx")
    expected = read_by_onnx(proto)
    assert file_facts.file_facts(proto.SerializeToString()) == expected
    assert file_facts.file_facts(tmp_path / "model.onnx") == expected
    assert [value.name for value in expected.overridable] == ["w"] and expected.metadata.version == -3


def test_a_negative_extent_is_unknown() -> None:
    proto = model()
    proto.graph.input[0].type.tensor_type.shape.dim[1].dim_value = -1
    found = file_facts.file_facts(proto.SerializeToString())
    assert found is not None and found == read_by_onnx(proto) and found.inputs[0].shape == ["N", None, 3]


def test_unusual_files_are_left_to_onnx(tmp_path: Path) -> None:
    untyped, sequence, named = model(), model(), model()
    untyped.graph.output[0].ClearField("type")
    sequence.graph.output[0].type.CopyFrom(
        helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [1]))
    )
    named.graph.node[0].op_type = "ZipMap"
    content = model().SerializeToString()
    whole = [untyped.SerializeToString(), sequence.SerializeToString(), named.SerializeToString()]
    for given in (*whole, content[:-7], content[1:], content + content, b"", b"ORTM" * 9):
        assert file_facts.file_facts(given) is None
    (tmp_path / "empty.onnx").touch()
    for file in ("none.onnx", "empty.onnx", "."):
        assert file_facts.file_facts(tmp_path / file) is None


def test_a_session_of_a_cached_program_imports_neither_onnx_nor_llvm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANDBRIDGE_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "model.onnx"
    onnx.save(model(), file)
    code = f"""
import sys, numpy as np
import landbridge.onnxruntime as ort
session = ort.InferenceSession({str(file)!r})
(y,) = session.run(None, {{"x": np.ones((2, 1, 3), np.float32)}})
assert y.shape == (2, 1, 3), y
print(sorted({{"onnx", "onnx_ir", "xdsl", "llvmlite", "logging"}} & set(sys.modules)))
"""
    command = [sys.executable, "-c", code]
    first, second = (subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2))
    assert "onnx_ir" in first and second.strip() == "[]"
