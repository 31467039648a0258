"""Initializers and dimensions that options change, against onnxruntime."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

import landbridge.onnxruntime as ours
from landbridge.onnxruntime.capi import onnxruntime_pybind11_state as failures
from tests.onnxruntime.both import both

SCALED = """<ir_version: 8, opset_import: ["": 18]> scaled (float[N, 4] x) => (float[N, 4] y)
<float[4] w = {1, -2, 3, 0.5}, float[4] b = {0, 1, 0, 1}> { p = Mul (x, w)  y = Add (p, b) }"""
X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


def model() -> onnx.ModelProto:
    return parser.parse_model(SCALED)


def externally(name: str) -> onnx.ModelProto:
    """The model whose initializer ``name`` is said to be in a file that is not there."""
    made = model()
    (tensor,) = [each for each in made.graph.initializer if each.name == name]
    del tensor.float_data[:]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": "nowhere.bin", "offset": "0", "length": "16"}.items():
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    return made


def test_an_initializer_is_given() -> None:
    w = np.array([2, 2, 2, 2], np.float32)

    def program(onnxruntime: ModuleType) -> Any:
        options = onnxruntime.SessionOptions()
        value = onnxruntime.OrtValue.ortvalue_from_numpy(w)
        options.add_initializer("w", value)
        return onnxruntime.InferenceSession(model().SerializeToString(), options).run(None, {"x": X})

    np.testing.assert_allclose(both(program)[0], X * 2 + np.array([0, 1, 0, 1], np.float32))


def test_initializers_of_files_that_are_not_there() -> None:
    w = np.array([4, 3, 2, 1], np.float32)

    def program(onnxruntime: ModuleType) -> Any:
        options = onnxruntime.SessionOptions()
        options.add_external_initializers(["w"], [onnxruntime.OrtValue.ortvalue_from_numpy(w)])
        return onnxruntime.InferenceSession(externally("w").SerializeToString(), options).run(None, {"x": X})

    both(program)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("v", np.zeros(4, np.float32), "no initializer 'v'; it has b, w"),
        ("w", np.zeros(5, np.float32), r"'w' is tensor\(float\)\[5\]; .* FLOAT and shape \[4\]"),
        ("w", np.zeros(4, np.float64), r"'w' is tensor\(double\)\[4\]"),
    ],
)
def test_an_initializer_that_does_not_fit(name: str, value: Any, says: str) -> None:
    options = ours.SessionOptions()
    options.add_initializer(name, ours.OrtValue.ortvalue_from_numpy(value))
    with pytest.raises(failures.InvalidArgument, match=says):
        ours.InferenceSession(model().SerializeToString(), options)


def test_a_name_too_many_is_refused() -> None:
    with pytest.raises(failures.InvalidArgument, match="2 names and 0 values"):
        ours.SessionOptions().add_external_initializers(["w", "b"], [])


def test_a_dimension_by_its_denotation() -> None:
    marked = model()
    marked.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"

    def program(onnxruntime: ModuleType) -> Any:
        options = onnxruntime.SessionOptions()
        options.add_free_dimension_override_by_denotation("DATA_BATCH", 3)
        return onnxruntime.InferenceSession(marked.SerializeToString(), options).run(None, {"x": X})

    both(program)


def test_libraries_of_operators_are_refused_with_the_way_out() -> None:
    with pytest.raises(failures.NotImplemented, match=r"libops\.so: .*host_operator"):
        ours.SessionOptions().register_custom_ops_library("libops.so")


def test_external_data_of_bytes_is_in_the_folder_that_an_entry_names(tmp_path: Path) -> None:
    w = np.array([4, 3, 2, 1], np.float32)
    (tmp_path / "nowhere.bin").write_bytes(w.tobytes())

    def program(onnxruntime: ModuleType) -> Any:
        options = onnxruntime.SessionOptions()
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(tmp_path))
        return onnxruntime.InferenceSession(externally("w").SerializeToString(), options).run(None, {"x": X})

    np.testing.assert_allclose(both(program)[0], X * w + np.array([0, 1, 0, 1], np.float32))
    with pytest.raises(failures.InvalidGraph, match="a model in memory has no folder"):
        ours.InferenceSession(externally("w").SerializeToString())


def linked(folder: Path, other: Path) -> Path:
    """A model whose data is a link into the folder ``other``."""
    w = np.array([4, 3, 2, 1], np.float32)
    other.mkdir(exist_ok=True)
    (other / "w.bin").write_bytes(w.tobytes())
    (folder / "nowhere.bin").symlink_to(other / "w.bin")
    path = folder / "m.onnx"
    path.write_bytes(externally("w").SerializeToString())
    return path


@pytest.mark.parametrize("changes", [False, True])
def test_external_data_behind_links(changes: bool, tmp_path: Path) -> None:
    """Where options change the model it is read by the session, else by the compile."""
    path = linked(tmp_path, tmp_path / "inside")

    def program(onnxruntime: ModuleType) -> Any:
        options = onnxruntime.SessionOptions()
        value = onnxruntime.OrtValue.ortvalue_from_numpy(np.ones(4, np.float32))  # onnxruntime does not keep it
        if changes:
            options.add_initializer("b", value)
        return onnxruntime.InferenceSession(str(path), options).run(None, {"x": X})

    both(program)


@pytest.mark.parametrize("changes", [False, True])
def test_links_that_lead_elsewhere(changes: bool, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    path = linked(tmp_path / "mine", tmp_path / "other")
    options = ours.SessionOptions()
    if changes:
        options.add_initializer("b", ours.OrtValue.ortvalue_from_numpy(np.zeros(4, np.float32)))
    with pytest.raises(failures.InvalidGraph, match="outside of"):
        ours.InferenceSession(str(path), options)
    options.add_session_config_entry("landbridge.allow_links", "1")
    (found,) = ours.InferenceSession(str(path), options).run(None, {"x": X})
    np.testing.assert_allclose(found, X * [4, 3, 2, 1] + [0, 0 if changes else 1, 0, 0 if changes else 1], rtol=1e-6)


@pytest.mark.parametrize(("domain", "operator"), [("", "Exp"), ("com.microsoft", "Gelu")])
def test_outputs_of_which_only_the_name_is_reported(domain: str, operator: str) -> None:
    """Of operators that onnx knows their type is inferred, of others it is the program's."""
    made = model()
    made.graph.node[0].domain, made.graph.node[0].op_type = domain, operator
    del made.graph.node[0].input[1]
    made.graph.output.append(onnx.ValueInfoProto(name="p"))
    made.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))

    def program(onnxruntime: ModuleType) -> Any:
        session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
        return [(each.name, each.type, each.shape) for each in session.get_outputs()], session.run(None, {"x": X})

    both(program)
