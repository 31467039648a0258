"""First programs of whole models, and what the first tier leaves to the compiler."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.executable.instructions import HostCall
from landbridge.first_tier.program import first_program, is_first
from tests.ops.test_quantized_recurrent import network
from tests.whole_models.light_models import light_model
from tests.whole_models.small_models import add, edges, projection

TARGET = lb.Target("llvm")


def _model(nodes, inputs, outputs, constants=(), opset=17):
    values = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in each.items()]
        for each in (inputs, outputs)
    ]
    tensors = [numpy_helper.from_array(array, name) for name, array in dict(constants).items()]
    graph = helper.make_graph(nodes, "tested", *values, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def _first(model, shapes=None):
    return first_program(model.SerializeToString(), TARGET, shapes)


def _both(model, *arrays, shapes=None):
    """The outputs of the first program and those of the compiled one."""
    executable = _first(model, shapes)
    assert executable is not None
    assert is_first(executable)
    compiled = lb.compile(model, TARGET, shapes=shapes)
    assert not is_first(compiled)
    assert [spec.name for spec in executable.main.outputs] == [spec.name for spec in compiled.main.outputs]
    return [[np.asarray(y) for y in lb.Session(each, num_threads=1)(*arrays)] for each in (executable, compiled)]


@pytest.mark.parametrize("model", [add(), edges(24, 20), projection()], ids=["add", "edges", "projection"])
def test_it_computes_what_the_compiled_program_does(model):
    x = np.random.default_rng(0).random([d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim])
    (first,), (compiled,) = _both(model, x.astype(np.float32))
    # Sums of up to 512 products of about 0.05: a few units in the last place of 1.
    np.testing.assert_allclose(first, compiled, rtol=1e-5, atol=1e-5)


def test_a_whole_network():
    model = light_model("squeezenet")
    executable = _first(model)
    x = np.random.default_rng(0).random((1, 3, 224, 224), np.float32)
    (found,) = lb.Session(executable, num_threads=1)(x)
    import onnxruntime

    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"data_0": x})
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-4, atol=1e-7)


def test_an_attention_layer_with_shapes_of_the_first_run():
    rng = np.random.default_rng(0)
    weights = {name: rng.normal(0, 0.1, (32, 32)).astype(np.float32) for name in "qkv"}
    constants = weights | {
        "heads": np.array([0, -1, 4, 8], np.int64),
        "flat": np.array([0, 0, 32], np.int64),
        "scale": np.array(8**-0.5, np.float32),
        "g": np.ones(32, np.float32),
        "b": np.zeros(32, np.float32),
        "half": np.array(0.5, np.float32),
        "root": np.array(2**-0.5, np.float32),
        "one": np.array(1, np.float32),
    }
    nodes = []
    for name, perm in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        nodes.append(helper.make_node("MatMul", ["x", name], [f"{name}1"]))
        nodes.append(helper.make_node("Reshape", [f"{name}1", "heads"], [f"{name}2"]))
        nodes.append(helper.make_node("Transpose", [f"{name}2"], [f"{name}3"], perm=perm))
    nodes += [
        helper.make_node("MatMul", ["q3", "k3"], ["s"]),
        helper.make_node("Mul", ["s", "scale"], ["t"]),
        helper.make_node("Softmax", ["t"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v3"], ["o"]),
        helper.make_node("Transpose", ["o"], ["o1"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["o1", "flat"], ["o2"]),
        helper.make_node("Add", ["o2", "x"], ["r"]),
        helper.make_node("LayerNormalization", ["r", "g", "b"], ["n"], axis=-1),
        helper.make_node("Mul", ["n", "root"], ["e"]),
        helper.make_node("Erf", ["e"], ["e1"]),
        helper.make_node("Add", ["e1", "one"], ["e2"]),
        helper.make_node("Mul", ["n", "e2"], ["e3"]),
        helper.make_node("Mul", ["e3", "half"], ["y"]),
    ]
    model = _model(nodes, {"x": (1, "S", 32)}, {"y": (1, "S", 32)}, constants)
    assert _first(model) is None  # the extent is open
    for length in (5, 12):
        x = rng.normal(size=(1, length, 32)).astype(np.float32)
        (first,), (compiled,) = _both(model, x, shapes={"x": x.shape})
        np.testing.assert_allclose(first, compiled, rtol=1e-4, atol=1e-5)


def test_outputs_that_are_views_inputs_and_constants():
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Reshape", ["r", "shape"], ["y"]),
        helper.make_node("Reshape", ["x", "shape"], ["same"]),
        helper.make_node("Identity", ["r"], ["again"]),
        helper.make_node("Identity", ["c"], ["fixed"]),
        helper.make_node("Neg", ["r"], ["n"]),
    ]
    shapes = {"y": (6,), "same": (6,), "again": (2, 3), "fixed": (2,), "n": (2, 3), "r": (2, 3)}
    constants = {"shape": np.array([6], np.int64), "c": np.array([1, 2], np.float32)}
    model = _model(nodes, {"x": (2, 3)}, shapes, constants)
    x = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
    positive = np.maximum(x, 0)
    found = [np.asarray(y) for y in lb.Session(_first(model), num_threads=1)(x)]
    wanted = [positive.reshape(6), x.reshape(6), positive, np.array([1, 2], np.float32), -positive, positive]
    for result, expected in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(result, expected)


def test_an_operand_that_is_read_later_is_not_overwritten():
    nodes = [
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Reshape", ["a", "shape"], ["v"]),
        helper.make_node("Exp", ["a"], ["b"]),
        helper.make_node("Add", ["v", "v"], ["c"]),
        helper.make_node("Transpose", ["b"], ["d"]),
        helper.make_node("Relu", ["d"], ["y"]),
    ]
    model = _model(nodes, {"x": (2, 3)}, {"y": (3, 2), "c": (6,)}, {"shape": np.array([6], np.int64)})
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    y, c = (np.asarray(each) for each in lb.Session(_first(model), num_threads=1)(x))
    np.testing.assert_array_equal(c, -2 * x.reshape(6))
    np.testing.assert_allclose(y, np.exp(-x).T, rtol=1e-6)


def test_runs_do_not_disturb_each_other_and_bound_memory_stays_bound():
    session = lb.Session(_first(edges(8, 8)), num_threads=1)
    x = np.zeros((1, 3, 8, 8), np.float32)
    session.set_input_zero_copy("x", x)
    rng = np.random.default_rng(0)
    results = []
    for _ in range(2):
        x[...] = rng.random(x.shape)
        session.run()
        results.append(np.array(session.get_output(0)))
        wanted = np.asarray(lb.Session(_first(edges(8, 8)), num_threads=1)(x)[0])
        np.testing.assert_array_equal(results[-1], wanted)
    assert not np.array_equal(*results)


def test_it_is_saved_and_loaded(tmp_path):
    executable = _first(edges(8, 8))
    executable.save(tmp_path / "edges.lbx")
    loaded = lb.load(tmp_path / "edges.lbx")
    assert is_first(loaded)
    x = np.random.default_rng(0).random((1, 3, 8, 8), np.float32)
    results = [np.asarray(lb.Session(each, num_threads=1)(x)[0]) for each in (executable, loaded)]
    np.testing.assert_array_equal(*results)


def test_a_file_may_change_once_it_is_read(tmp_path):
    path = tmp_path / "add.onnx"
    onnx.save(add(), path)
    executable = first_program(path, TARGET)
    assert executable.metadata["model"] == "add"
    path.write_bytes(b"")
    (y,) = lb.Session(executable, num_threads=1)(np.zeros(64, np.float32))
    np.testing.assert_array_equal(np.asarray(y), np.arange(64, dtype=np.float32))


def test_nodes_that_no_output_needs_are_left_out():
    nodes = [helper.make_node("NoSuchOperator", ["x"], ["z"]), helper.make_node("Relu", ["x"], ["y"])]
    executable = _first(_model(nodes, {"x": (2,)}, {"y": (2,)}))
    assert sum(isinstance(each, HostCall) for each in executable.main.instructions) == 1


@pytest.mark.parametrize(
    ("node", "opset"),
    [
        (helper.make_node("NoSuchOperator", ["x"], ["y"]), 17),
        (helper.make_node("Relu", ["x"], ["y"], domain="com.microsoft"), 17),
        (helper.make_node("Relu", ["x"], ["y"], of_a_later_opset=1), 17),
        (helper.make_node("Relu", ["x", "x"], ["y"]), 17),
        (helper.make_node("Relu", ["x"], ["y"], consumed_inputs=[0]), 1),
        (helper.make_node("Gather", ["x", "far"], ["y"]), 17),
        (helper.make_node("Reshape", ["x", "two"], ["y"]), 17),
        (helper.make_node("Softmax", ["x"], ["y"], axis=5), 17),
        (helper.make_node("Reshape", ["x", "shape_of_a_run"], ["y"]), 17),
        (helper.make_node("MatMul", ["x", "far"], ["y"]), 17),
    ],
    ids=lambda each: getattr(each, "op_type", each),
)
def test_it_leaves_to_the_compiler(node, opset):
    constants = {"far": np.array([9], np.int64), "two": np.array([2], np.int64)}
    shape = helper.make_tensor_value_info("shape_of_a_run", TensorProto.INT64, (1,))
    model = _model([node], {"x": (3,)}, {"y": None}, constants, opset)
    model.graph.input.append(shape)
    assert _first(model) is None


@pytest.mark.parametrize("content", [b"", b"\xff" * 40, b"not a model", b"\x3a\x7f"])
def test_what_is_no_model(content, tmp_path):
    (tmp_path / "model.onnx").write_bytes(content)
    assert first_program(content, TARGET) is None
    assert first_program(tmp_path / "model.onnx", TARGET) is None
    assert first_program(tmp_path / "missing.onnx", TARGET) is None


def test_every_cut_of_a_file_is_left_to_the_compiler():
    content = add(4).SerializeToString()
    outcomes = [first_program(content[:size], TARGET) for size in range(len(content))]
    assert all(each is None or is_first(each) for each in outcomes)
    assert outcomes[len(content) // 2] is None


def test_other_targets_and_shapes_that_contradict_the_file():
    content = add().SerializeToString()
    assert first_program(content, lb.Target("c")) is None
    assert first_program(content, TARGET, {"x": (3,)}) is None
    assert first_program(content, TARGET, {"z": (64,)}) is None


def test_it_imports_nothing_of_the_compiler(tmp_path):
    onnx.save(edges(8, 8), tmp_path / "edges.onnx")
    code = (
        "import sys, numpy, landbridge as lb\n"
        "from pathlib import Path\n"
        "from landbridge.first_tier.program import first_program\n"
        "target = lb.Target('llvm')\n"  # asks LLVM about this host
        "known = set(sys.modules)\n"
        "session = lb.Session(first_program(Path(sys.argv[1]), target), num_threads=1)\n"
        "session(numpy.ones((1, 3, 8, 8), numpy.float32))\n"
        "print(*set(sys.modules) - known)"
    )
    child = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "edges.onnx"], check=True, capture_output=True, text=True
    )
    tops = {name.partition(".")[0] for name in child.stdout.split()}
    assert tops.isdisjoint({"onnx", "xdsl", "onnx_ir", "google", "ml_dtypes"})
    assert not [name for name in child.stdout.split() if name.startswith(("landbridge.frontend", "landbridge.ir"))]


def test_the_plan_keeps_tensors_apart(monkeypatch):
    import landbridge.first_tier.instructions as linking
    from landbridge.planner.buffers import Plan
    from landbridge.planner.checker import check

    planned = []

    def checked(buffers, fit):
        offsets = linking_sweep(buffers, fit)
        reached = max((o + b.size for o, b in zip(offsets, buffers, strict=True)), default=0)
        check(buffers, Plan({b.id: o for b, o in zip(buffers, offsets, strict=True)}, reached, 0, False, 0.0))
        planned.append(len(buffers))
        return offsets

    linking_sweep = linking.sweep
    monkeypatch.setattr(linking, "sweep", checked)
    assert _first(light_model("shufflenet")) is not None
    assert planned
    assert planned[0] > 20


def _branches(then, otherwise, condition="c"):
    graphs = [
        helper.make_graph(nodes, name, [], [helper.make_tensor_value_info("y_" + name, TensorProto.FLOAT, None)])
        for name, nodes in (("then", then), ("else", otherwise))
    ]
    return helper.make_node("If", [condition], ["y"], then_branch=graphs[0], else_branch=graphs[1])


@pytest.mark.parametrize("extent", [1, 3])
def test_the_branch_of_an_if_that_shapes_decide(extent):
    """Exporters write them around Squeeze: the other branch would not even have a legal shape."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "one"], ["e"]),
        helper.make_node("Equal", ["e", "one"], ["c"]),
        _branches(
            [helper.make_node("Squeeze", ["x", "axes"], ["y_then"])], [helper.make_node("Relu", ["x"], ["y_else"])]
        ),
    ]
    constants = {"one": np.array(1, np.int64), "axes": np.array([1], np.int64)}
    model = _model(nodes, {"x": (4, "E")}, {"y": None}, constants)
    x = np.random.default_rng(0).standard_normal((4, extent)).astype(np.float32)
    executable = _first(model, {"x": x.shape})
    (found,) = lb.Session(executable, num_threads=1)(x)
    np.testing.assert_array_equal(found, x[:, 0] if extent == 1 else np.maximum(x, 0))
    calls = [each for each in executable.main.instructions if isinstance(each, HostCall)]
    assert len(calls) == 1, "shapes are computed when the program is made"


def test_an_if_that_a_run_decides():
    """Both branches read values around them, one of which is in a branch of a branch."""
    inner = _branches([helper.make_node("Neg", ["x"], ["y_then"])], [helper.make_node("Exp", ["a"], ["y_else"])], "d")
    inner.output[0] = "y_then"
    nodes = [
        helper.make_node("Abs", ["x"], ["a"]),
        helper.make_node("ReduceSum", ["x"], ["t"], keepdims=1),
        helper.make_node("Greater", ["t", "zero"], ["c"]),
        helper.make_node("Greater", ["t", "two"], ["d"]),
        _branches([inner], [helper.make_node("Add", ["a", "x"], ["y_else"])]),
    ]
    constants = {"zero": np.array(0, np.float32), "two": np.array(2, np.float32)}
    model = _model(nodes, {"x": (2, 3)}, {"y": (2, 3)}, constants)
    for shift in (-1, 0.2, 1):
        x = np.linspace(-0.5, 0.5, 6, dtype=np.float32).reshape(2, 3) + np.float32(shift)
        wanted = np.abs(x) + x if shift < 0 else np.exp(np.abs(x)) if shift < 0.5 else -x
        (first,), (compiled,) = _both(model, x)
        np.testing.assert_allclose(first, wanted, rtol=1e-6)
        np.testing.assert_allclose(first, compiled, rtol=1e-6)


def test_an_if_whose_branches_differ_in_shape_is_left_to_the_compiler():
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["t"], keepdims=0),
        helper.make_node("Greater", ["t", "zero"], ["c"]),
        _branches([helper.make_node("Neg", ["x"], ["y_then"])], [helper.make_node("Neg", ["t"], ["y_else"])]),
    ]
    model = _model(nodes, {"x": (2, 3)}, {"y": None}, {"zero": np.array(0, np.float32)})
    assert _first(model) is None


@pytest.mark.parametrize("reduction", ["none", "add"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_elements_are_scattered(reduction, axis):
    """Of equal places the last one stays, indices count from the end too, and those out of range are dropped."""
    rng = np.random.default_rng(1)
    shape = [2, 3, 4]
    shape[axis] = 9
    model = _model(
        [
            helper.make_node("Abs", ["x"], ["a"]),
            helper.make_node("ScatterElements", ["a", "i", "u"], ["y"], axis=axis, reduction=reduction),
        ],
        {"x": (2, 5, 4), "u": shape},
        {"y": (2, 5, 4)},
        opset=18,
    )
    model.graph.input.append(helper.make_tensor_value_info("i", TensorProto.INT64, shape))
    x, updates = (rng.standard_normal(each).astype(np.float32) for each in ((2, 5, 4), shape))
    extent = (2, 5, 4)[axis]
    indices = rng.integers(-extent - 1, extent + 1, shape)
    (first,), (compiled,) = _both(model, x, updates, indices)
    np.testing.assert_allclose(first, compiled, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("scale", [1, 0], ids=["random", "zeros"])
@pytest.mark.parametrize("channels", [3, 40], ids=["float32 sums", "float64 sums"])
def test_a_quantized_convolution_is_exact(channels, scale):
    """As onnxruntime's tool for dynamic quantization writes it; its result is to be that of the compiled program."""
    rng = np.random.default_rng(2)
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("ConvInteger", ["q", "w", "z", "wz"], ["n"], pads=[1, 1, 1, 1], kernel_shape=[3, 3]),
        helper.make_node("Cast", ["n"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["s", "ws"], ["both"]),
        helper.make_node("Mul", ["f", "both"], ["y"]),
    ]
    constants = {
        "w": rng.integers(0, 256, (5, channels, 3, 3)).astype(np.uint8),
        "wz": np.array(130, np.uint8),
        "ws": np.array(0.01, np.float32),
    }
    model = _model(nodes, {"x": (1, channels, 6, 7)}, {"y": (1, 5, 6, 7)}, constants)
    x = (scale * rng.standard_normal((1, channels, 6, 7))).astype(np.float32)
    (first,), (compiled,) = _both(model, x)
    np.testing.assert_allclose(first, compiled, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("directions", [1, 2])
def test_a_quantized_lstm(directions):
    model = network(directions, 20, 32, zeros=True, columns=False)
    x = np.random.default_rng(4).standard_normal((7, 3, 20)).astype(np.float32)
    for first, compiled in zip(*_both(model, x, shapes={"x": x.shape}), strict=True):
        # A state on the edge of two of 255 steps may round to either: about 1 / 255 of it, in few elements.
        assert np.abs(first - compiled).max() < 0.01
        assert np.median(np.abs(first - compiled)) < 1e-5
