"""Outputs that speak of classes by name, beside onnxruntime's."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import landbridge as lb
from landbridge.onnxruntime import InferenceSession

X = np.random.default_rng(0).standard_normal((7, 4)).astype(np.float32)
VALUES: dict[str, Any] = {"classlabels_ints": [3, 0, 8]}
TEXT: dict[str, Any] = {"classlabels_strings": ["setosa", "versicolor", "virginica"]}


def model(labels: dict[str, Any], *, maps: bool, handed_on: bool = False, more: str = "") -> onnx.ModelProto:
    """A linear classifier of three classes, as skl2onnx and onnxmltools write it."""
    weights = np.random.default_rng(1).standard_normal(12).tolist()
    nodes = [
        helper.make_node(
            "LinearClassifier", ["x"], ["c" if handed_on or more else "label", "p"], domain="ai.onnx.ml",
            coefficients=weights, intercepts=[0.1, 0.2, 0.3], multi_class=1, post_transform="SOFTMAX", **labels,
        )
    ]  # fmt: skip
    is_text = "classlabels_strings" in labels
    if handed_on:
        nodes.append(helper.make_node("Cast", ["c"], ["label"], to=TensorProto.STRING))
    if more:
        nodes.append(helper.make_node(more, ["c"], ["label"]))
    kind: Any = helper.make_tensor_type_proto(TensorProto.FLOAT, ["n", 3])
    if maps:
        keys = {f"classlabels_{'strings' if is_text else 'int64s'}": next(iter(labels.values()))}
        nodes.append(helper.make_node("ZipMap", ["p"], ["chances"], domain="ai.onnx.ml", **keys))
        row = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
        kind = helper.make_sequence_type_proto(
            helper.make_map_type_proto(TensorProto.STRING if is_text else TensorProto.INT64, row)
        )
    element = TensorProto.STRING if is_text else TensorProto.INT64
    outputs = [
        helper.make_tensor_value_info("label", element, ["n"]),
        helper.make_value_info("chances" if maps else "p", kind),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    return helper.make_model(helper.make_graph(nodes, "g", inputs, outputs), opset_imports=opsets, ir_version=8)


CASES = {
    "maps of numbers": (VALUES, True, False),
    "maps of text": (TEXT, True, False),
    "text alone": (TEXT, False, False),
    "text that is handed on": (TEXT, True, True),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", CASES)
def test_as_onnxruntime_gives_them(case: str) -> None:
    labels, maps, handed_on = CASES[case]
    source = model(labels, maps=maps, handed_on=handed_on).SerializeToString()
    peer = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
    ours = InferenceSession(source)
    assert [each.type for each in ours.get_outputs()] == [each.type for each in peer.get_outputs()]
    (label, chances), (wanted, known) = ours.run(None, {"x": X}), peer.run(None, {"x": X})
    assert label.tolist() == wanted.tolist()
    if maps:
        assert [list(row) for row in chances] == [list(row) for row in known]
        chances, known = ([list(row.values()) for row in each] for each in (chances, known))
    np.testing.assert_allclose(chances, known, atol=1e-6)


def test_a_program_gives_numbers_and_says_what_they_stand_for() -> None:
    reported = "output 'label' is text, and becomes the number of one of 'setosa', 'versicolor', 'virginica'"
    with (
        pytest.warns(lb.ModelWarning, match=reported),
        pytest.warns(lb.ModelWarning, match="a column for each of 'setosa'"),
    ):
        executable = lb.compile(model(TEXT, maps=True))
    label, chances = lb.Session(executable)(X)
    np.testing.assert_array_equal(np.asarray(chances).argmax(1), label)
    assert np.asarray(label).dtype == np.int64


def test_a_file_of_operators_of_machine_learning_alone() -> None:
    """As onnxruntime ships one: it names no other opset."""
    source = model(VALUES, maps=True)
    del source.opset_import[0]
    (_, chances) = InferenceSession(source.SerializeToString()).run(None, {"x": X})
    assert [list(row) for row in chances] == [[0, 3, 8]] * len(X)


def test_text_that_something_is_computed_of_is_refused() -> None:
    with pytest.raises(lb.CompileError):
        lb.compile(model(TEXT, maps=False, more="Unique"))
