"""Programs written for onnxruntime: each runs on it and on ours, changed by its import alone, and gives the same."""

from __future__ import annotations

import importlib
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

import landbridge as lb
from tests.onnxruntime.both import both

NETWORK = """<ir_version: 8, opset_import: ["": 18], producer_name: "test", producer_version: "1", model_version: 3>
network (float[N, 4] input) => (float[N, 2] output, float[N, 2] positive)
<float[4, 2] w = {1, -2, 3, 0.5, -1, 2, 0.25, 1}> {
    output = MatMul (input, w)
    positive = Relu (output)
}"""
TWO = '<ir_version: 8, opset_import: ["": 18]> two (float[3] a, int64[3] i) => (float[3] y) { y = Gather (a, i) }'


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("onnxruntime") / "model.onnx"
    onnx.save(parser.parse_model(NETWORK), file)
    return str(file)


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


def test_load_and_run(model: str, x: np.ndarray) -> None:
    def program(onnxruntime: ModuleType) -> Any:
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        return [
            session.run(None, {"input": x}),
            session.run([], {"input": x}),
            session.run(["positive"], {"input": x[:1]}),
            session.run(["positive", "output"], {"input": np.asfortranarray(x)}),
            session.run(["output"], {"input": x.tolist()}),
        ]

    both(program)


def test_the_files_path_is_where_optimum_reads_it(model: str) -> None:
    def program(onnxruntime: ModuleType) -> Any:
        sources = (model, Path(model), Path(model).read_bytes())
        return [str(onnxruntime.InferenceSession(source)._model_path) for source in sources]

    both(program)


def test_bytes_options_and_metadata(model: str, x: np.ndarray) -> None:
    def program(onnxruntime: ModuleType) -> Any:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.enable_profiling = False
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        session = onnxruntime.InferenceSession(Path(model).read_bytes(), sess_options=options)
        meta = session.get_modelmeta()
        run_options = onnxruntime.RunOptions()
        run_options.log_severity_level = 3
        return [
            [(v.name, v.shape, v.type) for v in (*session.get_inputs(), *session.get_outputs())],
            [meta.graph_name, meta.producer_name, meta.version, meta.domain, meta.custom_metadata_map],
            session.get_providers(),
            session.get_provider_options(),
            session.get_overridable_initializers(),
            options.get_session_config_entry("session.intra_op.allow_spinning"),
            session.run(None, {session.get_inputs()[0].name: x}, run_options),
            onnxruntime.get_device(),
        ]

    both(program)


def test_a_dimension_that_is_overridden(model: str, x: np.ndarray) -> None:
    def program(onnxruntime: ModuleType) -> Any:
        options = onnxruntime.SessionOptions()
        options.add_free_dimension_override_by_name("N", 3)
        return onnxruntime.InferenceSession(model, options).run(None, {"input": x})

    both(program)


def test_ort_values(model: str, x: np.ndarray) -> None:
    def program(onnxruntime: ModuleType) -> Any:
        value = onnxruntime.OrtValue.ortvalue_from_numpy(x, "cpu", 0)
        facts = [value.device_name(), value.shape(), value.data_type(), value.is_tensor(), value.element_type()]
        facts += [value.has_value(), value.is_sparse_tensor(), value.is_tensor_sequence(), value.tensor_size_in_bytes()]
        session = onnxruntime.InferenceSession(model)
        results = session.run_with_ort_values(["output"], {"input": value})
        buffer = onnxruntime.OrtValue.ortvalue_from_shape_and_type([3, 4], np.float32)
        buffer.update_inplace(2 * x)
        return [facts, value.numpy(), session.run(["output"], {"input": value}), results[0].numpy(), buffer.numpy()]

    both(program)


def test_io_binding_of_host_arrays(model: str, x: np.ndarray) -> None:
    def program(onnxruntime: ModuleType) -> Any:
        session = onnxruntime.InferenceSession(model)
        binding = session.io_binding()
        binding.bind_cpu_input("input", x)
        binding.bind_output("output")
        session.run_with_iobinding(binding)
        return [binding.copy_outputs_to_cpu(), [value.numpy() for value in binding.get_outputs()]]

    both(program)


def test_io_binding_of_memory(model: str, x: np.ndarray) -> None:
    def program(onnxruntime: ModuleType) -> Any:
        session = onnxruntime.InferenceSession(model)
        source = onnxruntime.OrtValue.ortvalue_from_numpy(x)
        rooms = {
            n: onnxruntime.OrtValue.ortvalue_from_shape_and_type([3, 2], np.float32) for n in ("output", "positive")
        }
        binding = session.io_binding()
        binding.bind_input(
            name="input", device_type=source.device_name(), device_id=0, element_type=np.float32, shape=source.shape(),
            buffer_ptr=source.data_ptr(),
        )  # fmt: skip
        for name, buffer in rooms.items():
            binding.bind_output(
                name=name, device_type=buffer.device_name(), device_id=0, element_type=np.float32, shape=buffer.shape(),
                buffer_ptr=buffer.data_ptr(),
            )  # fmt: skip
        session.run_with_iobinding(binding)
        first = [buffer.numpy().copy() for buffer in rooms.values()]
        binding.clear_binding_outputs()
        binding.bind_ortvalue_input("input", onnxruntime.OrtValue.ortvalue_from_numpy(-x))
        binding.bind_ortvalue_output("positive", rooms["positive"])
        binding.synchronize_inputs()
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        return [first, rooms["positive"].numpy(), [value.numpy() for value in binding.get_outputs()]]

    both(program)


def test_results_of_memory_are_written_in_place(model: str, x: np.ndarray) -> None:
    ort = importlib.import_module("landbridge.onnxruntime")
    session = ort.InferenceSession(model)
    binding = session.io_binding()
    binding.bind_cpu_input("input", x)
    for name in ("output", "positive"):
        binding.bind_ortvalue_output(name, ort.OrtValue.ortvalue_from_shape_and_type([3, 2], np.float32))
    session.run_with_iobinding(binding)
    with lb.no_copies():
        session.run_with_iobinding(binding)


def test_a_run_in_the_background(model: str, x: np.ndarray) -> None:
    def program(onnxruntime: ModuleType) -> Any:
        session = onnxruntime.InferenceSession(model)
        seen, over = [], threading.Event()

        def callback(results: Any, user_data: Any, error: str) -> None:
            seen.append((results, user_data, error))
            over.set()

        session.run_async(["output"], {"input": x}, callback, "mine")
        assert over.wait(60)
        return seen

    both(program)


def test_many_threads(model: str, x: np.ndarray) -> None:
    def program(onnxruntime: ModuleType) -> Any:
        session = onnxruntime.InferenceSession(model)
        with ThreadPoolExecutor(8) as pool:
            return list(pool.map(lambda i: session.run(["output"], {"input": x * i}), range(32)))

    both(program)


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("names", "feed", "kind"),
    [
        (None, {}, "ValueError"),
        (None, {"wrong": np.ones((3, 4), np.float32)}, "ValueError"),
        (["none"], {"input": np.ones((3, 4), np.float32)}, "InvalidArgument"),
        (None, {"input": np.ones((3, 4))}, "InvalidArgument"),
        (None, {"input": np.ones(4, np.float32)}, "InvalidArgument"),
        (None, {"input": np.ones((3, 5), np.float32)}, "InvalidArgument"),
        (None, {"input": np.ones((3, 4), np.float32), "more": np.ones(1, np.float32)}, "InvalidArgument"),
    ],
)
def test_feeds_that_do_not_fit(model: str, names: Any, feed: Any, kind: str) -> None:
    def program(onnxruntime: ModuleType) -> Any:
        session = onnxruntime.InferenceSession(model)
        state = importlib.import_module(f"{onnxruntime.__name__}.capi.onnxruntime_pybind11_state")
        expected = getattr(state, kind, ValueError)
        with pytest.raises(expected) as raised:
            session.run(names, feed)
        return type(raised.value).__name__

    assert both(program) == kind


def test_files_that_are_no_models(tmp_path: Path) -> None:
    (tmp_path / "page.onnx").write_text("<html>")

    def program(onnxruntime: ModuleType, name: str) -> Any:
        with pytest.raises(Exception) as raised:
            onnxruntime.InferenceSession(str(tmp_path / name))
        return type(raised.value).__name__

    assert both(program, "none.onnx") == "NoSuchFile"
    assert both(program, "page.onnx") == "InvalidProtobuf"
    with pytest.raises(TypeError):
        importlib.import_module("landbridge.onnxruntime").InferenceSession(3)


def test_providers_that_are_not_there_are_a_warning(model: str, x: np.ndarray) -> None:
    ort = importlib.import_module("landbridge.onnxruntime")
    with pytest.warns(UserWarning, match="'CUDAExecutionProvider' is not in available provider names"):
        session = ort.InferenceSession(model, providers=[("CUDAExecutionProvider", {}), "CPUExecutionProvider"])
    assert session.get_providers() == ["CPUExecutionProvider"]
    with pytest.raises(lb.LandbridgeError, match="cuda:0 is not there"):
        ort.OrtValue.ortvalue_from_numpy(x, "cuda", 0)


def test_an_operator_that_is_missing_is_reported() -> None:
    text = TWO.replace("Gather (a, i)", "NoSuchOperator (a, i)").replace('"": 18', '"": 18, "own": 1')
    ort = importlib.import_module("landbridge.onnxruntime")
    with pytest.raises(lb.LandbridgeError, match="NoSuchOperator"):
        ort.InferenceSession(parser.parse_model(text.replace("NoSuch", "own.NoSuch")).SerializeToString())


def test_terminate_ends_a_run(model: str, x: np.ndarray) -> None:
    def program(onnxruntime: ModuleType) -> Any:
        options = onnxruntime.RunOptions()
        options.terminate = True
        with pytest.raises(Exception, match="terminate flag"):
            onnxruntime.InferenceSession(model).run(None, {"input": x}, options)
        return None

    both(program)


OVERRIDABLE = """<ir_version: 8, opset_import: ["": 18]>
scaled (float[N, 2] x, float[2] scale, float[2] offset) => (float[N, 2] y)
<float[2] scale = {2, 3}, float[2] offset = {1, -1}> { s = Mul (x, scale)  y = Add (s, offset) }"""


def test_initializers_that_are_inputs_can_be_overridden() -> None:
    content = parser.parse_model(OVERRIDABLE).SerializeToString()

    def program(ort: ModuleType) -> Any:
        session = ort.InferenceSession(content, providers=["CPUExecutionProvider"])
        x, ones = np.arange(6, dtype=np.float32).reshape(3, 2), np.ones(2, np.float32)
        return [
            [value.name for value in session.get_overridable_initializers()],
            session.run(None, {"x": x}),
            session.run(None, {"x": x, "scale": 5 * ones}),
            session.run(["y"], {"x": x[:1], "scale": 7 * ones}),
            session.run(None, {"x": x, "offset": ones, "scale": -ones}),
            session.run(None, {"x": x}),
        ]

    both(program)


def test_an_override_that_does_not_fit() -> None:
    content = parser.parse_model(OVERRIDABLE).SerializeToString()

    def program(ort: ModuleType) -> Any:
        session = ort.InferenceSession(content, providers=["CPUExecutionProvider"])
        x = np.zeros((3, 2), np.float32)
        for wrong in (np.ones(2, np.float64), np.ones(3, np.float32)):
            with pytest.raises(ort.capi.onnxruntime_pybind11_state.InvalidArgument):
                session.run(None, {"x": x, "scale": wrong})

    both(program)


def test_extents_that_the_file_does_not_know() -> None:
    """Some exporters write -1, or give two axes one question mark; the axes are open, each of its own."""
    question = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [-1, 3, "?", "?"])
    result = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [-1, 3, "?", "?"])
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    graph = onnx.helper.make_graph([node], "unknown", [question], [result])
    text = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8)

    def program(onnxruntime: ModuleType) -> Any:
        session = onnxruntime.InferenceSession(text.SerializeToString())
        rng = np.random.default_rng(1)
        shapes = [(1, 3, 4, 5), (2, 3, 7, 7), (5, 3, 1, 2)]
        results = [session.run(None, {"x": rng.standard_normal(shape).astype(np.float32)}) for shape in shapes]
        return [[value.shape for value in (*session.get_inputs(), *session.get_outputs())], results]

    both(program)


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.float16, bool, np.uint8])
def test_a_dtype_that_the_model_does_not_take_is_reported_in_the_same_words(model: str, dtype: Any) -> None:
    def program(onnxruntime: ModuleType) -> Any:
        with pytest.raises(Exception, match="Unexpected input data type") as raised:
            onnxruntime.InferenceSession(model).run(None, {"input": np.zeros((1, 4), dtype)})
        return str(raised.value).partition(" for input")[0]

    both(program)
