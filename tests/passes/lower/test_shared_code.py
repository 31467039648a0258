"""Kernels that differ in numbers alone have one code, which computes what each of them did."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import landbridge as lb
from landbridge.executable.instructions import Call, flattened
from landbridge.executable.json_form import instruction_list, to_json
from landbridge.executable.kernel_facts import facts_of, facts_of_call
from landbridge.passes.lower.call_words import WordTerm, terms

TARGETS = ["llvm", "llvm -mcpu=x86-64-v3", "c"]


def chain(nodes: list[onnx.NodeProto], shape: list[int | str], **weights: np.ndarray) -> onnx.ModelProto:
    """``nodes`` between ``x`` and ``y``, both of two axes."""
    both = (("x", shape), ("y", [None, None]))
    values = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, each) for name, each in both]
    arrays = [numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "chain", values[:1], values[1:], arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def products(shape: list[int | str], *widths: int) -> onnx.ModelProto:
    """A product and a Relu for each width."""
    rng = np.random.default_rng(0)
    weights = {f"w{i}": rng.standard_normal(pair) / 8 for i, pair in enumerate(itertools.pairwise(widths))}
    nodes = []
    last = "x"
    for i in range(len(weights)):
        nodes += [helper.make_node("MatMul", [last, f"w{i}"], [f"p{i}"], name=f"product{i}")]
        last = "y" if i == len(weights) - 1 else f"r{i}"
        nodes += [helper.make_node("Relu", [f"p{i}"], [last], name=f"relu{i}")]
    return chain(nodes, shape, **weights)


def scaled(*factors: float) -> onnx.ModelProto:
    """Products of ``x`` with weights of one shape, each times its factor."""
    rng = np.random.default_rng(0)
    nodes, weights = [], {}
    for i, factor in enumerate(factors):
        weights |= {f"w{i}": rng.standard_normal((64, 48)) / 8, f"f{i}": np.array(factor)}
        nodes += [
            helper.make_node("MatMul", ["x", f"w{i}"], [f"p{i}"], name=f"product{i}"),
            helper.make_node("Mul", [f"p{i}", f"f{i}"], [f"y{i}"], name=f"factor{i}"),
        ]
    nodes.append(helper.make_node("Concat", [f"y{i}" for i in range(len(factors))], ["y"], axis=0))
    return chain(nodes, [32, 64], **weights)


def calls(executable: lb.Executable) -> list[Call]:
    return [each for each in flattened(executable.main.instructions) if isinstance(each, Call)]


def expected(x: np.ndarray, model: onnx.ModelProto) -> np.ndarray:
    """What ``products`` are in float64."""
    found = x.astype(np.float64)
    for array in model.graph.initializer:
        found = np.maximum(found @ numpy_helper.to_array(array), 0)
    return found


@pytest.mark.parametrize("target", TARGETS)
def test_products_of_several_widths_are_one_code(target: str, tmp_path: Path) -> None:
    model = products([96, 64], 64, 64, 128, 64)
    executable = lb.compile(model, target)
    made = calls(executable)
    assert len(made) == 3 and len({call.function for call in made}) == 1
    assert len({call.sizes for call in made}) == 3
    x = np.random.default_rng(1).standard_normal((96, 64)).astype(np.float32)
    executable.save(tmp_path / "products.lbx")
    for each in (executable, lb.load(tmp_path / "products.lbx")):
        for threads in (1, 2):
            (found,) = lb.Session(each, num_threads=threads)(x)
            np.testing.assert_allclose(found, expected(x, model), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_tasks_of_one_iteration_and_of_more_are_one_code(target: str) -> None:
    """Of an image of one pixel 192 and 384 channels: with the widest vectors one and two tiles, all in one task."""
    rng = np.random.default_rng(3)
    channels = {48: 192, 96: 384}
    values = [helper.make_tensor_value_info(f"x{k}", onnx.TensorProto.FLOAT, [1, k, 1, 1]) for k in channels]
    outs = [helper.make_tensor_value_info(f"y{k}", onnx.TensorProto.FLOAT, [1, n, 1, 1]) for k, n in channels.items()]
    weights = {k: (rng.standard_normal((n, k)) / 8).astype(np.float32) for k, n in channels.items()}
    nodes = [helper.make_node("Conv", [f"x{k}", f"w{k}"], [f"y{k}"], name="product") for k in channels]
    arrays = [numpy_helper.from_array(array[..., None, None], f"w{k}") for k, array in weights.items()]
    graph = helper.make_graph(nodes, "pixel", values, outs, arrays)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    made = calls(lb.compile(model, "llvm -mcpu=x86-64-v4"))
    assert len(made) == 2 and len({call.function for call in made}) == 1
    executable = lb.compile(model, target)
    given = [rng.standard_normal((1, k, 1, 1)).astype(np.float32) for k in channels]
    for x, found, weight in zip(given, lb.Session(executable)(*given), weights.values(), strict=True):
        wanted = weight.astype(np.float64) @ x.reshape(-1)
        np.testing.assert_allclose(np.asarray(found).reshape(-1), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_open_rows_and_words_that_are_known(target: str) -> None:
    model = products(["N", 64], 64, 64, 128, 64)
    executable = lb.compile(model, target)
    assert len({call.function for call in calls(executable)}) < 3
    session = lb.Session(executable)
    for rows in (1, 7, 96, 333):
        x = np.random.default_rng(rows).standard_normal((rows, 64)).astype(np.float32)
        np.testing.assert_allclose(session(x)[0], expected(x, model), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_factors_are_words(target: str) -> None:
    model = scaled(1.5, -2.0, 0.25)
    executable = lb.compile(model, target)
    assert len({call.function for call in calls(executable)}) == 1 < len(calls(executable))
    x = np.random.default_rng(2).standard_normal((32, 64)).astype(np.float32)
    given = {each.name: numpy_helper.to_array(each).astype(np.float64) for each in model.graph.initializer}
    wanted = np.concatenate([x @ given[f"w{i}"] * given[f"f{i}"] for i in range(3)])
    np.testing.assert_allclose(lb.Session(executable)(x)[0], wanted, rtol=1e-4, atol=1e-5)


def test_numbers_that_follow_from_others_are_one_word() -> None:
    rows = [(7, 9), (14, 18), (9, 11), (100, 3), (21, 28), (16, 20)]
    made = terms(rows)
    words = {made[row].word: row for row in rows if made[row] == WordTerm(made[row].word)}
    for row in rows:
        term = made[row]
        assert row == tuple(term.factor * value + term.offset for value in words[term.word])
    assert len(words) == len({each.word for each in made.values()}) < len(rows) - 2


@pytest.mark.parametrize("target", TARGETS)
def test_what_moves_one_by_one_keeps_its_numbers(target: str) -> None:
    """LLVM makes vectors of such loops, by the strides and counts it knows."""
    rng = np.random.default_rng(0)
    shapes = {"a": (24, 40), "b": (40, 24)}
    values = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, each) for name, each in shapes.items()]
    outs = [helper.make_tensor_value_info(f"{name}2", onnx.TensorProto.FLOAT, [None, None]) for name in shapes]
    nodes = [
        helper.make_node("Slice", [name, "from", "to", "axes", "steps"], [f"{name}2"], name="slice") for name in shapes
    ]
    ends = {"from": [1, 1], "to": [23, 23], "axes": [0, 1], "steps": [3, 5]}
    arrays = [numpy_helper.from_array(np.array(each), name) for name, each in ends.items()]
    graph = helper.make_graph(nodes, "parts", values, outs, arrays)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    given = [rng.standard_normal(shape).astype(np.float32) for shape in shapes.values()]
    executable = lb.compile(model, target)
    assert len({call.function for call in calls(executable)}) == len(calls(executable)) == 2
    for array, found in zip(given, lb.Session(executable)(*given), strict=True):
        assert (np.asarray(found) == array[1:23:3, 1:23:5]).all()


def test_operands_of_a_sum_may_stand_in_either_order() -> None:
    """Rest and product, and product and rest, of two widths."""
    rng = np.random.default_rng(0)
    weights = {"v": rng.standard_normal((64, 64)) / 8, "w": rng.standard_normal((64, 64)) / 8}
    nodes = [
        helper.make_node("MatMul", ["x", "v"], ["p"], name="product"),
        helper.make_node("Add", ["x", "p"], ["q"], name="sum"),
        helper.make_node("MatMul", ["q", "w"], ["r"], name="product"),
        helper.make_node("Add", ["r", "q"], ["y"], name="sum"),
    ]
    executable = lb.compile(chain(nodes, [32, 64], **weights))
    assert len({call.function for call in calls(executable)}) == 1 < len(calls(executable))
    x = np.random.default_rng(4).standard_normal((32, 64)).astype(np.float32)
    rest = x + x @ weights["v"]
    np.testing.assert_allclose(lb.Session(executable)(x)[0], rest + rest @ weights["w"], rtol=1e-4, atol=1e-5)


def test_zeros_of_two_signs_are_two_numbers() -> None:
    x = np.ones((5, 37), np.float32)
    nodes = [helper.make_node("Mul", ["x", "a"], ["p"]), helper.make_node("Mul", ["x", "b"], ["q"])]
    nodes += [helper.make_node("Concat", ["p", "q"], ["y"], axis=0)]
    model = chain(nodes, [5, 37], a=np.array(0.0), b=np.array(-0.0))
    found = np.asarray(lb.Session(lb.compile(model))(x)[0])
    assert not np.signbit(found[:5]).any() and np.signbit(found[5:]).all()


def test_each_call_has_its_own_facts() -> None:
    executable = lb.compile(products([96, 64], 64, 64, 128, 64))
    facts = facts_of(executable)
    flops = [each.flops for call in calls(executable) if (each := facts_of_call(facts, call.function, call.name))]
    products_alone = [2 * 96 * a * b for a, b in ((64, 64), (64, 128), (128, 64))]
    assert [round(found / alone, 1) for found, alone in zip(flops, products_alone, strict=True)] == [1.0] * 3
    assert sorted(flops) != [flops[0]] * 3


def test_programs_of_one_model_share_what_they_did() -> None:
    """Axes as an input choose among programs, each with its own words."""
    nodes = [*products([96, 96], 96, 192, 384).graph.node]
    nodes[-1].output[0] = "z"
    nodes += [helper.make_node("ReduceSum", ["z", "axes"], ["y"], keepdims=0)]
    model = products([96, 96], 96, 192, 384)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.output[0].type.tensor_type.shape.dim.pop()
    model.graph.input.append(helper.make_tensor_value_info("axes", onnx.TensorProto.INT64, [1]))
    session = lb.Session(lb.compile(model))
    x = np.random.default_rng(3).standard_normal((96, 96)).astype(np.float32)
    for axis in (0, 1):
        (found,) = session(x, np.array([axis]))
        np.testing.assert_allclose(found, expected(x, model).sum(axis), rtol=1e-4, atol=1e-4)


def test_words_below_zero_are_saved() -> None:
    call = Call(0, "f", (0, 1), 1, sizes=(-174, 5))
    assert instruction_list(json.loads(json.dumps(to_json((call,))))) == (call,)


def bottlenecks(*widths: int) -> onnx.ModelProto:
    """Blocks of three convolutions of a residual network: each stage has half the places of the one before."""
    rng = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    arrays: list[onnx.TensorProto] = []

    def conv(x: str, name: str, shape: tuple[int, int, int], stride: int = 1) -> str:
        out, given, taps = shape
        for weight, each in ((f"{name}_w", (out, given, taps, taps)), (f"{name}_b", (out,))):
            drawn = rng.standard_normal(each) / np.sqrt(given * taps * taps)
            arrays.append(numpy_helper.from_array(drawn.astype(np.float32), weight))
        attributes = {"pads": [taps // 2] * 4, "strides": [stride] * 2}
        nodes.append(helper.make_node("Conv", [x, f"{name}_w", f"{name}_b"], [name], name=name, **attributes))
        return name

    def relu(x: str) -> str:
        nodes.append(helper.make_node("Relu", [x], [f"{x}_relu"]))
        return f"{x}_relu"

    last, places = "x", 56
    for stage, width in enumerate(widths):
        if stage:
            last = relu(conv(last, f"down{stage}", (4 * width, 4 * widths[stage - 1], 1), 2))
        inner = relu(conv(last, f"reduce{stage}", (width, 4 * width, 1)))
        inner = relu(conv(inner, f"taps{stage}", (width, width, 3)))
        total = f"sum{stage}"
        nodes.append(helper.make_node("Add", [conv(inner, f"widen{stage}", (4 * width, width, 1)), last], [total]))
        last = relu(total)
    shape, out = [1, 4 * widths[0], places, places], places >> (len(widths) - 1)
    ends = (("x", shape), (last, [1, 4 * widths[-1], out, out]))
    values = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, each) for name, each in ends]
    graph = helper.make_graph(nodes, "bottlenecks", values[:1], values[1:], arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_stages_of_a_residual_network_share_their_products() -> None:
    """Layers that do the same over other extents take the same blocks: ResNet-50 has 22 kernels for 32."""
    target = "llvm -mcpu=x86-64-v4 -vector-bits=512 -vector-registers=32 -l1-bytes=49152 -l2-bytes=1310720"
    made = calls(lb.compile(bottlenecks(64, 128, 256), target))
    assert len(made) == 13
    assert len({call.function for call in made}) <= 9
