"""A run whose sizes come with it takes no more memory than it may, and the Session goes on with others."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, parser

import landbridge as lb
from landbridge.errors import InputError, OutOfMemoryError
from landbridge.process import available_memory

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
#: 256 MiB of float32: no machine lacks them, so that without the limit the runs would be.
MANY = 64 << 20
LIMIT = 64 << 20


def model(nodes: list[tuple[Any, ...]], **inputs: tuple[int, list[int]]) -> onnx.ModelProto:
    graph = helper.make_graph(
        [helper.make_node(*node[:3], **(node[3] if len(node) > 3 else {})) for node in nodes],
        "g",
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
        [helper.make_tensor_value_info("y", FLOAT, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def sizes(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


X = np.ones(4, np.float32)
#: A model whose size the input says, its arguments for a count of elements, and what the error names.
CASES: dict[str, tuple[onnx.ModelProto, Callable[[int], list[Any]], str]] = {
    "Pad": (
        model([("Pad", ["x", "p"], ["y"])], x=(FLOAT, [4]), p=(INT64, [2])),
        lambda n: [X, sizes(0, n - 4)],
        "tensor 'y' float32[{n}] of a run",
    ),
    "Tile": (
        model([("Tile", ["x", "p"], ["y"])], x=(FLOAT, [4]), p=(INT64, [1])),
        lambda n: [X, sizes(n // 4)],
        "tensor 'y' float32[{n}] of a run",
    ),
    "Expand": (
        model([("Expand", ["x", "p"], ["y"])], x=(FLOAT, [1]), p=(INT64, [1])),
        lambda n: [X[:1], sizes(n)],
        "tensor 'y' float32[{n}] of a run",
    ),
    "ConstantOfShape": (
        model([("ConstantOfShape", ["p"], ["y"])], p=(INT64, [1])),
        lambda n: [sizes(n)],
        "tensor 'y' float32[{n}] of a run",
    ),
    "what lies between": (
        model([("Pad", ["x", "p"], ["a"]), ("ReduceMax", ["a"], ["y"])], x=(FLOAT, [4]), p=(INT64, [2])),
        lambda n: [X, sizes(0, n - 4)],
        "the largest tensor is 'a' float32",
    ),
    "Range, by numpy": (
        model([("Range", ["a", "b", "c"], ["y"])], a=(FLOAT, []), b=(FLOAT, []), c=(FLOAT, [])),
        lambda n: [np.float32(0), np.float32(n), np.float32(1)],
        "the result of Range",
    ),
}


@pytest.mark.filterwarnings("ignore::landbridge.errors.FallbackWarning")
@pytest.mark.parametrize("name", CASES)
def test_a_run_that_needs_more_names_the_tensor_and_changes_nothing(name: str) -> None:
    made, arguments, named = CASES[name]
    session = lb.Session(lb.compile(made), num_threads=1, memory_limit=LIMIT)
    before = [np.array(each) for each in session(*arguments(8))]
    with pytest.raises(OutOfMemoryError) as reported:
        session(*arguments(MANY))
    output = str(reported.value)
    assert named.format(n=MANY) in output
    needed, allowed = (
        int(number.replace(",", "")) for number in re.findall(r"needs ([\d,]+) .* and ([\d,]+) are", output)[0]
    )
    assert needed == pytest.approx(4 * MANY, rel=1e-5) and allowed == LIMIT and "memory_limit= of the Session" in output
    for found, want in zip(session(*arguments(8)), before, strict=True):
        np.testing.assert_array_equal(np.asarray(found), want)


@pytest.mark.filterwarnings("ignore::landbridge.errors.FallbackWarning")
def test_a_result_whose_size_data_decide_is_limited() -> None:
    made = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[n] x) => (int64[1, m] y) { i = NonZero(x)  y = Neg(i) }'
    )
    session = lb.Session(lb.compile(made), num_threads=1, memory_limit=1 << 20)
    x = np.zeros(1 << 18, np.float32)
    x[:3] = 1
    assert session(x)[0].shape == (1, 3)
    with pytest.raises(OutOfMemoryError, match=r"output 'i' of node .* needs 2,097,152 bytes .* 1,048,576 are allowed"):
        session(np.ones_like(x))
    assert session(x)[0].shape == (1, 3)


def test_what_is_bound_stays_bound() -> None:
    made, arguments, _ = CASES["Pad"]
    session = lb.Session(lb.compile(made), num_threads=1, memory_limit=LIMIT)
    small, large = arguments(8), arguments(MANY)
    session.set_input(0, small[0])
    session.set_input(1, small[1])
    session.run()
    session.set_input(1, large[1])
    with pytest.raises(OutOfMemoryError, match="tensor 'y'"):
        session.run()
    session.set_input(1, small[1])
    session.run()
    np.testing.assert_array_equal(np.asarray(session.get_output(0)), [1, 1, 1, 1, 0, 0, 0, 0])


def test_memory_of_the_callers_own_is_not_limited() -> None:
    made, arguments, _ = CASES["Tile"]
    out = np.zeros(1 << 19, np.float32)
    session = lb.Session(lb.compile(made), num_threads=1, memory_limit=1 << 20)
    session(*arguments(out.size), out=[out])
    assert (out == 1).all()
    with pytest.raises(OutOfMemoryError):
        session(*arguments(out.size))


def test_without_a_limit_it_is_what_the_machine_has(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made, arguments, named = CASES["Pad"]
    session = lb.Session(lb.compile(made), num_threads=1)
    session(*arguments(8))
    file = tmp_path / "meminfo"
    file.write_text("MemAvailable: 100000 kB\nSwapFree: 0 kB\n")
    monkeypatch.setattr(available_memory, "_MEMORY", file)
    with pytest.raises(OutOfMemoryError, match=re.escape(named.format(n=MANY)) + ".*102,400,000 are available"):
        session(*arguments(MANY))
    file.write_text("MemAvailable: 900000 kB\n")
    assert session(*arguments(8 << 20))[0].shape == (8 << 20,)


def test_spare_instances_have_the_limit_too() -> None:
    program = lb.compile(CASES["Pad"][0])
    with lb.Pool(program, 2, memory_limit=LIMIT) as pool:
        with pytest.raises(OutOfMemoryError):
            pool.submit(*CASES["Pad"][1](MANY)).result()
        assert pool.submit(*CASES["Pad"][1](8)).result()[0].shape == (8,)


@pytest.mark.parametrize("limit", [0, -1, 1000, 1.5, "1 GiB", True])
def test_limits_that_are_none(limit: Any) -> None:
    program = lb.compile(model([("Relu", ["x"], ["y"])], x=(FLOAT, [4])))
    with pytest.raises(InputError, match=r"memory_limit is .* bytes from 1,048,576"):
        lb.Session(program, memory_limit=limit)


def test_runs_that_grow_in_small_steps_do_not_pass_the_limit() -> None:
    """What a Session holds of smaller runs counts: the limit is of all that a run uses, not of what it adds."""
    body = "b = Transpose(a) t = MatMul(a, b) u = MatMul(t, t) y = ReduceSum<keepdims=0>(u)"
    text = f'<ir_version: 8, opset_import: ["" : 17]> g (float[n, 1] a) => (float[] y) {{ {body} }}'
    session = lb.Session(lb.compile(parser.parse_model(text)), memory_limit=1 << 20, num_threads=1)
    session(np.zeros((350, 1), np.float32))  # 980,000 bytes
    with pytest.raises(OutOfMemoryError, match="1,344,848 bytes"):
        session(np.zeros((410, 1), np.float32))


BOUNDED = parser.parse_model(
    '<ir_version: 8, opset_import: ["": 17]> g (float[n, 64] x) => (float[n] y) {'
    " a = Softmax<axis = 0>(x)  y = ReduceMax<axes = [1], keepdims = 0>(a) }"
)


def test_a_later_size_is_limited_where_the_memory_of_all_is_reserved() -> None:
    session = lb.Session(lb.compile(BOUNDED, dims={"n": "1..1000000"}), num_threads=1, memory_limit=1 << 20)
    few, many = np.ones((8, 64), np.float32), np.ones((1 << 14, 64), np.float32)
    session(few)
    for _ in range(2):
        with pytest.raises(OutOfMemoryError, match="1,048,576 are allowed"):
            session(many)
        session.set_input(0, few)
        session.run()
    for n in range(8, 4000, 100):  # sizes that advance evenly, which are prepared together
        session(np.ones((n, 64), np.float32))
    with pytest.raises(OutOfMemoryError, match="1,048,576 are allowed"):
        for n in range(4000, 5000, 100):
            session(np.ones((n, 64), np.float32))


@pytest.mark.parametrize("dims", [{"n": "1..1000000"}, None])
def test_a_later_size_needs_what_the_machine_has(
    dims: dict[str, str] | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    session = lb.Session(lb.compile(BOUNDED, dims=dims), num_threads=1)
    (before,) = session(np.ones((8, 64), np.float32))
    file = tmp_path / "meminfo"
    file.write_text("MemAvailable: 20000 kB\nSwapFree: 0 kB\n")
    monkeypatch.setattr(available_memory, "_MEMORY", file)
    with pytest.raises(OutOfMemoryError, match="20,480,000 are available"):
        session(np.ones((1 << 18, 64), np.float32))
    (found,) = session(np.ones((8, 64), np.float32))
    np.testing.assert_array_equal(np.asarray(found), np.asarray(before))
    file.write_text("MemAvailable: 500000 kB\nSwapFree: 0 kB\n")
    (found,) = session(np.ones((1 << 18, 64), np.float32))
    assert found.shape == (1 << 18,)
