"""Sparse tensors, adapters, compiled models and vectors of values: what onnxruntime makes of them, and ours."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

import landbridge as lb
import landbridge.onnxruntime as ours
from landbridge.errors import LandbridgeError
from tests.onnxruntime.both import both

HEAD = '<ir_version: 8, opset_import: ["": 18]> '
NETWORK = HEAD + "n (float[N, 4] x) => (float[N, 4] y, float[N, 4] z) { y = Relu (x)  z = Neg (x) }"
CONTENT = parser.parse_model(NETWORK).SerializeToString()
#: Weights that an adapter has other values of.
ADAPTED = (
    HEAD + "n (float[N, 2] x, float[2] a, float[2] b) => (float[N, 2] y) <float[2] a = {0, 0}, float[2] b = {1, 1}> "
)
ADAPTED += "{ s = Mul (x, b)  y = Add (s, a) }"
X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


def test_sparse_tensors() -> None:
    def program(ort: ModuleType) -> Any:
        shape, values, device = np.array([3, 4], np.int64), np.array([1, 2], np.float32), ort.OrtDevice.make("cpu", 0)
        flat, rows = np.array([1, 5], np.int64), np.array([0, 1, 2, 2], np.int64)
        coo = ort.SparseTensor.sparse_coo_from_numpy(shape, values, flat, device)
        csr = ort.SparseTensor.sparse_csr_from_numpy(shape, values, flat % 4, rows, device)
        held = ort.OrtValue.ort_value_from_sparse_tensor(csr)
        for refused in (coo.as_csrc_view, csr.as_coo_view, held.numpy):
            with pytest.raises(RuntimeError):
                refused()
        with pytest.raises(Exception, match=r"(?i)indices"):
            ort.SparseTensor.sparse_csr_from_numpy(shape, values, flat, rows[:-1], device)
        facts = [[each.values(), list(each.dense_shape()), each.data_type(), each.format().name] for each in (coo, csr)]
        indices = [coo.as_coo_view().indices(), csr.as_csrc_view().inner(), csr.as_csrc_view().outer()]
        kinds = [held.is_tensor(), held.is_sparse_tensor(), held.data_type(), held.as_sparse_tensor().values()]
        return [facts, indices, kinds, coo.device_name()]

    both(program)


def test_a_sparse_feed_is_refused_with_the_way_out() -> None:
    sparse = ours.SparseTensor.sparse_coo_from_numpy([3, 4], X[0, :2], np.array([1, 5]))
    with pytest.raises(LandbridgeError, match=r"np.zeros\(dense_shape\)"):
        ours.InferenceSession(CONTENT).run(None, {"x": ours.OrtValue.ort_value_from_sparse_tensor(sparse)})


def test_adapters(tmp_path: Path) -> None:
    written, file = onnxruntime.AdapterFormat(), tmp_path / "a.onnx_adapter"
    values = {"a": np.array([5, 7], np.float32), "b": np.array([2, 3], np.float32)}
    written.set_adapter_version(3)
    written.set_model_version(2)
    written.set_parameters({name: onnxruntime.OrtValue.ortvalue_from_numpy(v) for name, v in values.items()})
    written.export_adapter(str(file))
    content = parser.parse_model(ADAPTED).SerializeToString()

    def program(ort: ModuleType) -> Any:
        adapter, options, read = ort.LoraAdapter(), ort.RunOptions(), ort.AdapterFormat.read_adapter(str(file))
        adapter.Load(str(file))
        options.add_active_adapter(adapter)
        session = ort.InferenceSession(content, providers=["CPUExecutionProvider"])
        x = np.ones((2, 2), np.float32)
        found = [session.run(None, {"x": x}), session.run(None, {"x": x}, options)]
        versions = [read.get_format_version(), read.get_adapter_version(), read.get_model_version()]
        return [found, versions, [value.numpy().copy() for _, value in sorted(read.get_parameters().items())]]

    with pytest.warns(UserWarning, match="once more"):
        both(program)
    file.write_bytes(file.read_bytes()[:60])
    for wrong in (file, tmp_path / "none"):
        with pytest.raises(LandbridgeError, match="cannot be read"):
            ours.LoraAdapter().Load(wrong)
    with pytest.raises(LandbridgeError, match="written"):
        ours.AdapterFormat().export_adapter(file)


def test_compiled_models(tmp_path: Path) -> None:
    onnx.save(onnx.load_from_string(CONTENT), tmp_path / "m.onnx")

    def program(ort: ModuleType) -> Any:
        compiler = ort.ModelCompiler(ort.SessionOptions(), str(tmp_path / "m.onnx"))
        compiler.compile_to_file(str(tmp_path / f"{ort.__name__}.onnx"))
        found = []
        pieces: list[bytes] = []
        compiler.compile_to_stream(lambda piece: pieces.append(bytes(piece)))
        for content in (str(tmp_path / f"{ort.__name__}.onnx"), compiler.compile_to_bytes(), b"".join(pieces)):
            session = ort.InferenceSession(content, providers=["CPUExecutionProvider"])
            found.append([session.run(None, {"x": X}), [each.shape for each in session.get_inputs()]])
        return found

    both(program)
    assert lb.load(tmp_path / "landbridge.onnxruntime.onnx").main.inputs[0].name == "x"
    ours.ModelCompiler(ours.SessionOptions(), tmp_path / "m.onnx").compile_to_file()
    assert (tmp_path / "m_ctx.onnx").exists()


def test_what_a_model_compiler_refuses(tmp_path: Path) -> None:
    options = ours.SessionOptions()
    with pytest.raises(LandbridgeError, match="weights of a compiled program are in its file"):
        ours.ModelCompiler(options, CONTENT, external_initializers_file_path="w.bin")
    with pytest.raises(LandbridgeError, match="give output_model_path"):
        ours.ModelCompiler(options, CONTENT).compile_to_file()
    (tmp_path / "there").touch()
    flags = ours.OrtCompileApiFlags.ERROR_IF_OUTPUT_FILE_EXISTS
    with pytest.raises(LandbridgeError, match="is there already"):
        ours.ModelCompiler(options, CONTENT, flags=flags).compile_to_file(tmp_path / "there")
    kernel = HEAD + "g (float[1,1,9] x, float[1,1,k] w) => (float[1,1,n] y) { y = Conv(x, w) }"
    with pytest.raises(LandbridgeError, match="add_free_dimension_override_by_name"):
        ours.ModelCompiler(options, parser.parse_model(kernel).SerializeToString()).compile_to_bytes()


def test_vectors_of_values() -> None:
    def program(ort: ModuleType) -> Any:
        state = __import__(f"{ort.__name__}.capi._pybind_state", fromlist=["OrtValueVector"])
        session = ort.InferenceSession(CONTENT, providers=["CPUExecutionProvider"])
        feeds, fetches = state.OrtValueVector(), state.OrtValueVector()
        feeds.push_back(ort.OrtValue.ortvalue_from_numpy(X)._ortvalue)
        device = ort.OrtDevice.make("cpu", 0)
        devices = [getattr(device, "_ort_device", device)] * 2
        session.run_with_ortvaluevector(ort.RunOptions(), ["x"], feeds, ["z", "y"], fetches, devices)
        return [len(fetches), [value.numpy() for value in fetches], fetches.element_type_at(0)]

    both(program)


def test_vectors_that_do_not_fit() -> None:
    session, value = ours.InferenceSession(CONTENT), ours.OrtValue.ortvalue_from_numpy(X)
    buffer = ours.OrtValue.ortvalue_from_shape_and_type([3, 4], np.float32)
    vector = __import__("landbridge.onnxruntime.ort_value_vector", fromlist=["x"]).OrtValueVector
    session.run_with_ortvaluevector(None, ["x"], vector([value]), ["z"], vector([buffer]))
    assert (np.asarray(buffer) == -X).all()
    with pytest.raises(LandbridgeError, match="one for each is needed"):
        session.run_with_ortvaluevector(None, ["x"], vector(), ["z"], vector())
