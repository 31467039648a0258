"""Files that are models, and files that are not."""

from __future__ import annotations

import gc
import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

import landbridge as lb
from landbridge.errors import CompileError, ImportModelError
from tests.frontend.models import imported, model, run, value

X = value("x", [2, 3])
ADD = model([helper.make_node("Add", ["x", "w"], ["y"])], [X], ["y"], {"w": np.ones(3, np.float32)})
ONES = np.ones((2, 3), np.float32)


def test_sources_are_equal(tmp_path: Path) -> None:
    path = tmp_path / "add.onnx"
    onnx.save(ADD, path)
    for source in (ADD, path, str(path), path.read_bytes()):
        np.testing.assert_array_equal(run(source, x=ONES)[0], ONES + 1)


def test_outputs_whose_shape_the_file_does_not_say(tmp_path: Path) -> None:
    silent = onnx.ModelProto()
    silent.CopyFrom(ADD)
    silent.graph.output[0].type.tensor_type.ClearField("shape")
    path = tmp_path / "add.onnx"
    onnx.save(silent, path)
    for source in (silent, path, path.read_bytes()):
        np.testing.assert_array_equal(run(source, x=ONES)[0], ONES + 1)
    silent.graph.node[0].op_type = "Nothing"
    with pytest.raises(ImportModelError, match="Nothing"):
        imported(silent)


def test_external_data(tmp_path: Path) -> None:
    path = tmp_path / "add.onnx"
    weight = np.arange(3000, dtype=np.float32).reshape(1000, 3)
    big = model([helper.make_node("Add", ["x", "w"], ["y"])], [value("x", [1000, 3])], ["y"], {"w": weight})
    onnx.save(big, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    assert (tmp_path / "w.bin").stat().st_size == weight.nbytes
    np.testing.assert_array_equal(run(path, x=weight)[0], weight * 2)


def test_external_data_that_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "add.onnx"
    weight = np.ones((1000, 3), np.float32)
    big = model([helper.make_node("Add", ["x", "w"], ["y"])], [value("x", [1000, 3])], ["y"], {"w": weight})
    onnx.save(big, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    (tmp_path / "w.bin").unlink()
    with pytest.raises(ImportModelError, match=r"w\.bin"):
        imported(path)


def test_truncated(tmp_path: Path) -> None:
    whole = ADD.SerializeToString()
    path = tmp_path / "cut.onnx"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ImportModelError, match=r"truncated|not a valid|no ONNX model"):
        imported(path)


@given(st.binary(max_size=200))
def test_garbage(data: bytes) -> None:
    with pytest.raises(ImportModelError):
        imported(data)


@given(st.integers(0, len(ADD.SerializeToString()) - 1))
def test_cut_anywhere(end: int) -> None:
    """A prefix of a file is refused, or (when it happens to be a model) imported; nothing else is raised."""
    try:
        imported(ADD.SerializeToString()[:end])
    except CompileError:
        return
    onnx.checker.check_model(onnx.load_model_from_string(ADD.SerializeToString()[:end]))


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ImportModelError, match=r"nowhere.onnx"):
        imported(tmp_path / "nowhere.onnx")


def test_invalid_model() -> None:
    bad = model([helper.make_node("Add", ["x", "nothing"], ["y"])], [X], ["y"])
    with pytest.raises(ImportModelError, match=r"not a valid ONNX model"):
        imported(bad)


def _old(op: str, opset: int, other: tuple[int, ...], **attributes: int) -> onnx.ModelProto:
    """``y = op(x, b)``, x of 2x3x4."""
    named = [("x", (2, 3, 4)), ("b", other), ("y", (2, 3, 4))]
    x, b, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in named)
    graph = helper.make_graph([helper.make_node(op, ["x", "b"], ["y"], **attributes)], "old", [x, b], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=3)


def test_an_opset_newer_than_onnx_knows_is_reported() -> None:
    newest = onnx.defs.onnx_opset_version()
    value = helper.make_tensor_value_info
    node = helper.make_node("Neg", ["x"], ["y"])
    graph = helper.make_graph([node], "g", [value("x", 1, [2])], [value("y", 1, [2])])
    for opset in (newest, newest + 1):
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        with warnings.catch_warnings(record=True) as reported:
            warnings.simplefilter("always")
            (y,) = lb.Session(lb.compile(model))(np.float32([1, -2]))
        assert list(y.numpy()) == [-1, 2]
        texts = [str(w.message) for w in reported if w.category is lb.ModelWarning]
        assert len(texts) == opset - newest and all(f"uses opset {opset}, and {newest} is" in text for text in texts)


@pytest.mark.parametrize("opset", [1, 5, 6])
@pytest.mark.parametrize(("op", "other"), [("Add", (4,)), ("Mul", (3, 4)), ("Sub", (2, 3, 4)), ("Div", ())])
def test_old_opsets_are_converted(op: str, other: tuple[int, ...], opset: int) -> None:
    rng = np.random.default_rng(0)
    x, b = rng.random((2, 3, 4), np.float32) + 1, np.asarray(rng.random(other, np.float32) + 1, np.float32)
    wanted = {"Add": np.add, "Mul": np.multiply, "Sub": np.subtract, "Div": np.divide}[op](x, b)
    broadcast = {} if other == (2, 3, 4) else {"broadcast": 1}
    (y,) = lb.Session(lb.compile(_old(op, opset, other, **broadcast)))(x, b)
    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-6)


def test_what_cannot_be_converted_is_reported() -> None:
    with pytest.raises(ImportModelError, match=r"uses opset 6.*export it again"):
        lb.compile(_old("Add", 6, (3,), broadcast=1, axis=1))


def test_local_functions_are_inlined() -> None:
    twice = helper.make_function(
        "own", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 18)]
    )
    m = model(
        [helper.make_node("Twice", ["x"], ["y"], domain="own")],
        [X],
        ["y"],
        opset_imports=[helper.make_opsetid("own", 1)],
        functions=[twice],
    )
    np.testing.assert_array_equal(run(m, x=ONES)[0], ONES * 2)


def test_a_compile_holds_no_second_copy_of_the_weights(tmp_path: Path) -> None:
    """What was parsed is let go when it is imported, though circles of references hold the model until the end."""
    if sys.platform != "linux":
        pytest.skip("memory is read from /proc")
    weight = np.ones((4096, 4096), np.float32)
    path = tmp_path / "large.onnx"
    onnx.save(
        model([helper.make_node("MatMul", ["x", "w"], ["y"])], [value("x", [1, 4096])], ["y"], {"w": weight}), path
    )
    gc.collect()
    gc.disable()
    try:
        before = _anonymous_bytes()
        module = imported(path)
        grown = _anonymous_bytes() - before
    finally:
        gc.enable()
    assert sum(array.nbytes for array in module.constants.values()) == weight.nbytes
    assert weight.nbytes <= grown < 1.5 * weight.nbytes


def _anonymous_bytes() -> int:
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssAnon:"))
    return int(line.split()[1]) << 10


def test_functions_of_another_opset_than_the_model() -> None:
    """ONNX allows it where the operators in them are the same in both."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 16, "f": 1]>
        g (float[4, 5] x) => (float[4] y, float[4, 5] z) { y = f.top (x) z = Abs (x) }
        <domain: "f", opset_import: ["": 15]>
        top (x) => (y) { a = ReduceMax <axes = [1], keepdims = 0> (x) y = Relu (a) }"""
    )
    x = np.random.default_rng(0).standard_normal((4, 5), "f4")
    found = lb.Session(lb.compile(model))({"x": x})
    np.testing.assert_array_equal(found["y"], np.maximum(x.max(1), 0))
    np.testing.assert_array_equal(found["z"], np.abs(x))
