"""Weights that stay in the file until they are imported: the same model comes of it as of its bytes."""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper

from landbridge.errors import ImportModelError
from landbridge.frontend.onnx import read_ahead
from landbridge.frontend.onnx.attributes import tensor_array
from landbridge.frontend.onnx.load import load_model
from landbridge.frontend.onnx.weights_in_file import light_model

DTYPES = ["bool", "float16", "float32", "float64", *(f"{s}int{n}" for s in ("", "u") for n in (8, 16, 32, 64))]


def array_of(dtype: str, *shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(len(shape)).integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)


def model(*weights: TensorProto) -> onnx.ModelProto:
    """Each weight is an output, by way of Identity."""
    nodes = [helper.make_node("Identity", [w.name], [f"{w.name}_out"]) for w in weights]
    outputs = [helper.make_tensor_value_info(f"{w.name}_out", w.data_type, w.dims) for w in weights]
    graph = helper.make_graph(nodes, "weights", [], outputs, list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def written(proto: onnx.ModelProto, folder: Path) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def initializers(source: Path | bytes) -> dict[str, np.ndarray[Any, Any]]:
    graph = load_model(source).model.graph
    for value in graph.initializers.values():
        assert value.const_value is not None
        assert value.shape == value.const_value.shape
    return {str(v.name): tensor_array(v.const_value) for v in graph.initializers.values() if v.const_value is not None}


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_file_has_what_its_bytes_have(dtype: str, tmp_path: Path) -> None:
    arrays = {"large": array_of(dtype, 5, 1000), "small": array_of(dtype, 3), "none": array_of(dtype, 0, 7)}
    proto = model(*(numpy_helper.from_array(array, name) for name, array in arrays.items()))
    path = written(proto, tmp_path)
    light = light_model(path)
    assert light is not None
    assert len(light.content) < len(path.read_bytes()) - arrays["large"].nbytes + 100
    for found in (initializers(path), initializers(proto.SerializeToString())):
        for name, array in arrays.items():
            assert found[name].dtype == array.dtype
            np.testing.assert_array_equal(found[name], array)


def test_narrow_floats(tmp_path: Path) -> None:
    array = np.arange(6000, dtype=np.float32).astype(ml_dtypes.bfloat16)
    raw = helper.make_tensor("w", TensorProto.BFLOAT16, [6000], array.tobytes(), raw=True)
    found = initializers(written(model(raw), tmp_path))["w"]
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found.view(np.uint16), array.view(np.uint16))


def test_names_that_say_more_than_ascii_and_fields_behind_the_data(tmp_path: Path) -> None:
    weight = numpy_helper.from_array(array_of("float32", 40, 40), "gewöhnlich")
    weight.doc_string = "what it is " * 30
    path = written(model(weight), tmp_path)
    assert light_model(path) is not None
    np.testing.assert_array_equal(initializers(path)["gewöhnlich"], array_of("float32", 40, 40))


def in_floats(name: str) -> TensorProto:
    return helper.make_tensor(name, TensorProto.FLOAT, [2000], [1.5] * 2000)


def of_wrong_size() -> TensorProto:
    return TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2001], raw_data=bytes(8000))


def external(folder: Path) -> TensorProto:
    (folder / "w.bin").write_bytes(bytes(8000))
    tensor = TensorProto(name="x", data_type=TensorProto.FLOAT, dims=[2000], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="w.bin")
    return tensor


def test_what_is_unusual_is_parsed_as_a_whole(tmp_path: Path) -> None:
    large = numpy_helper.from_array(array_of("float32", 50, 50), "large")
    for proto in (model(in_floats("w")), model(large, external(tmp_path)), model(large, large), model()):
        assert light_model(written(proto, tmp_path)) is None
    assert set(initializers(written(model(large, external(tmp_path)), tmp_path))) == {"large", "x"}
    assert initializers(written(model(in_floats("w")), tmp_path))["w"][0] == 1.5


@pytest.mark.parametrize("wrong", ["size", "type", "version", "edge"])
def test_a_faulty_file_is_refused_as_its_bytes_are(wrong: str, tmp_path: Path) -> None:
    proto = model(of_wrong_size() if wrong == "size" else numpy_helper.from_array(array_of("float32", 50, 50), "w"))
    if wrong == "type":
        proto.graph.initializer[0].data_type = 99
    if wrong == "version":
        proto.ir_version = 99
    if wrong == "edge":
        proto.graph.node[0].input[0] = "nowhere"
    path = written(proto, tmp_path)
    with pytest.raises(ImportModelError) as of_bytes:
        load_model(proto.SerializeToString())
    with pytest.raises(ImportModelError) as of_file:
        load_model(path)
    reported = str(of_file.value).replace(str(path), "the model")
    assert reported.splitlines()[0] == str(of_bytes.value).splitlines()[0]


def test_any_cut_is_an_error_or_left_to_protobuf(tmp_path: Path) -> None:
    whole = model(numpy_helper.from_array(array_of("float32", 50, 50), "w")).SerializeToString()
    path = tmp_path / "cut.onnx"
    for end in [*range(1, 200), *range(len(whole) - 200, len(whole))]:
        path.write_bytes(whole[:end])
        light = light_model(path)
        assert light is None or len(light.content) < 500


def test_a_file_that_is_cut_later_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "_AHEAD", 0)
    path = written(model(numpy_helper.from_array(array_of("float32", 50, 50), "w")), tmp_path)
    graph = load_model(path).model.graph
    os.truncate(path, 2000)
    tensor = graph.initializers["w"].const_value
    assert isinstance(tensor, ir.LazyTensor)
    with pytest.raises(ImportModelError, match="cut while it was read"):
        tensor_array(tensor)


def test_walks_of_one_model_have_its_weights_once(tmp_path: Path) -> None:
    path = written(model(numpy_helper.from_array(array_of("float32", 50, 50), "w")), tmp_path)
    tensor = load_model(path).model.graph.initializers["w"].const_value
    assert isinstance(tensor, ir.LazyTensor)
    first = tensor_array(tensor)
    assert tensor_array(tensor) is first
    in_use = weakref.ref(first)
    del first
    assert in_use() is None  # the file keeps none
    np.testing.assert_array_equal(tensor_array(tensor), array_of("float32", 50, 50))
