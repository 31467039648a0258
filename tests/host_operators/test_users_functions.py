"""Operators that users write in numpy: registered, compiled beside kernels, saved, refused."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import landbridge as lb
from landbridge.operators import REGISTRY, HostOperator, HostValue
from tests.plugins.test_open_dimensions import LOOPS, register_kinds

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def own_registry() -> Iterator[None]:
    with REGISTRY.isolated():
        yield


def model(
    op_type: str, shape: tuple[int | str, ...] = (3, 4), outputs: int = 1, rank: int = 2, **attributes: Any
) -> onnx.ModelProto:
    """Relu, the operator, and Neg of each of its outputs, the first of which has ``rank`` axes."""
    names = [f"y{i}" for i in range(outputs)]
    nodes = [
        onnx.helper.make_node("Relu", ["x"], ["r"]),
        onnx.helper.make_node(op_type, ["r"], names, name="mine", domain="test.host", **attributes),
        *(onnx.helper.make_node("Neg", [name], [f"z{i}"]) for i, name in enumerate(names)),
    ]
    x = onnx.helper.make_tensor_value_info("x", 1, shape)
    axes = [[f"z{i}_{axis}" for axis in range(2 if i else rank)] for i in range(outputs)]
    results = [onnx.helper.make_tensor_value_info(f"z{i}", 1, dims) for i, dims in enumerate(axes)]
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("test.host", 1)]
    return onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", [x], results), opset_imports=opsets, ir_version=8)


def compiled(of: onnx.ModelProto, **options: Any) -> lb.Executable:
    with pytest.warns(lb.FallbackWarning, match=r"test\.host\.\w+ \('mine'\)"):
        return lb.compile(of, **options)


def x_of(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def test_a_numpy_function_runs_between_kernels(tmp_path: Path) -> None:
    @lb.host_operator("test.host", "Cap")
    def cap(x: Array, *, limit: float = 1.0) -> Array:
        return np.minimum(x, np.float32(limit))

    executable = compiled(model("Cap", limit=0.25))
    x = x_of(3, 4)
    executable.save(tmp_path / "cap.lbx")
    for each in (executable, lb.load(tmp_path / "cap.lbx")):
        session = lb.Session(each)
        for _ in range(2):
            np.testing.assert_array_equal(session(x)[0], -np.minimum(np.maximum(x, 0), np.float32(0.25)))
    with lb.ledger() as ledger:
        session(x)
    assert [(entry.cause, entry.nbytes) for entry in ledger.entries] == [("host_operator", x.nbytes)]


def test_one_warning_a_compile() -> None:
    lb.host_operator("test.host", "Same")(lambda x: x)
    with warnings.catch_warnings(record=True) as reported:
        warnings.simplefilter("always")
        lb.compile(model("Same"))
    assert [w.category for w in reported] == [lb.FallbackWarning]
    assert reported[0].filename == __file__


def test_several_outputs_and_open_extents() -> None:
    @lb.host_operator("test.host", "Ends", results=lambda x: [(x.shape[1:], x.dtype), (x.shape, x.dtype)])
    def ends(x: Array) -> tuple[Array, Array]:
        return x.max(0), x - x.min(0)

    session = lb.Session(compiled(model("Ends", ("N", 4), 2, 1)))
    for n in (1, 5):
        x = x_of(n, 4)
        r = np.maximum(x, 0)
        most, above = session(x)
        np.testing.assert_array_equal(most, -r.max(0))
        np.testing.assert_array_equal(above, -(r - r.min(0)))


@pytest.mark.parametrize("extent", [3, "N"])
def test_the_data_may_decide_an_extent(extent: int | str, tmp_path: Path) -> None:
    @lb.host_operator("test.host", "Positive", results=lambda x: [((None, 4), x.dtype)])
    def positive(x: Array) -> Array:
        return x[x[:, 0] > 0]

    executable = compiled(model("Positive", (extent, 4)))
    executable.save(tmp_path / "cut.lbx")
    for each in (executable, lb.load(tmp_path / "cut.lbx")):
        session = lb.Session(each)
        for seed in range(4):
            x = np.random.default_rng(seed).standard_normal((3, 4)).astype(np.float32)
            r = np.maximum(x, 0)
            np.testing.assert_array_equal(session(x)[0], -r[r[:, 0] > 0])
        (none,) = session(np.full((3, 4), -1, np.float32))
        assert none.shape == (0, 4)


def test_without_results_open_extents_are_those_of_the_data() -> None:
    lb.host_operator("test.host", "Double")(lambda x: np.concatenate([x, x]))
    session = lb.Session(compiled(model("Double", ("N", 4))))
    for n in (2, 3):
        x = x_of(n, 4)
        np.testing.assert_array_equal(session(x)[0], -np.concatenate([np.maximum(x, 0)] * 2))


def test_a_state_is_of_a_session() -> None:
    @lb.host_operator("test.host", "Count", in_order=True)
    def count(*, start: int) -> Any:
        calls = iter(range(start, 100))
        return lambda x: np.full_like(x, next(calls))

    executable = compiled(model("Count", start=5))
    x = x_of(3, 4)
    for _ in range(2):
        session = lb.Session(executable)
        assert [-int(np.asarray(session(x)[0])[0, 0]) for _ in range(3)] == [5, 6, 7]


def test_inputs_are_only_read() -> None:
    @lb.host_operator("test.host", "Spoil", results=lambda x: [(x.shape, x.dtype)])
    def spoil(x: Array) -> Array:
        x[...] = 0
        return x

    with pytest.raises(ValueError, match="read-only"):
        lb.Session(compiled(model("Spoil")))(x_of(3, 4))


def test_another_shape_than_was_planned_is_refused() -> None:
    lb.host_operator("test.host", "Kept")(lambda x: x[x[:, 0] == 0] if (x[:, 0] == 0).any() else x[:1])
    session = lb.Session(compiled(model("Kept")))
    with pytest.raises(lb.ShapeError, match=r"'mine'.*results="):
        session(np.ones((3, 4), np.float32))


def test_what_its_function_raises_is_reported_when_a_model_is_compiled() -> None:
    @lb.host_operator("test.host", "Fails")
    def fails(x: Array) -> Array:
        raise RuntimeError("no such thing")

    with pytest.raises(lb.NodeError, match=r"'mine'.*RuntimeError: no such thing"):
        lb.compile(model("Fails"))


def test_what_is_known_is_computed_once() -> None:
    calls = []

    @lb.host_operator("test.host", "Table")
    def table(x: Array) -> Array:
        calls.append(x.shape)
        return x + 1

    session = lb.Session(lb.compile(model("Table"), constants={"x": np.ones((3, 4), np.float32)}))
    (found,) = session()
    np.testing.assert_array_equal(found, np.full((3, 4), -2))
    assert calls == [(3, 4)]


def test_a_version_is_found_by_opset() -> None:
    first, second = lambda x: x, lambda x: x + 1
    lb.host_operator("test.host", "Versions")(first)
    lb.host_operator("test.host", "Versions", since=4)(second)
    found = [REGISTRY.find(HostOperator, "test.host", "Versions", opset) for opset in (1, 3, 4, 9)]
    assert [each and each.function for each in found] == [first, first, second, second]
    with pytest.raises(lb.CompileError, match=r"two host operators for test\.host\.Versions since opset 4"):
        lb.host_operator("test.host", "Versions", since=4)(x_of)


def test_a_constant_input_is_reported_to_results() -> None:
    def results(x: HostValue) -> Any:
        assert x.value is None
        return [(x.shape, x.dtype)]

    lb.host_operator("test.host", "Told", results=results)(lambda x: x)
    compiled(model("Told"))


def test_a_file_names_what_is_not_registered(tmp_path: Path) -> None:
    lb.host_operator("test.host", "Gone")(lambda x: x)
    compiled(model("Gone")).save(tmp_path / "gone.lbx")
    code = (
        "import landbridge as lb\n"
        f"try: lb.Session(lb.load({str(tmp_path / 'gone.lbx')!r}))\n"
        "except lb.BindError as error: print(error)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "test.host.Gone" in ended.stdout and __name__ in ended.stdout


def test_targets_of_plain_loops_refuse_what_the_data_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    register_kinds(monkeypatch)
    lb.host_operator("test.host", "Some", results=lambda x: [((None,), x.dtype)])(lambda x: x[x > 0])
    with pytest.raises(lb.UnsupportedOperatorError, match="known sizes only"):
        lb.compile(model("Some", rank=1), LOOPS.name)
