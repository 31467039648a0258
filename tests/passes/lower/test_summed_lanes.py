"""Products whose sums lie along memory in both operands: tasks of enough rows transpose the columns as they copy them;
lanes are summed in others, and blocks have rows of either."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import landbridge as lb
from landbridge.executable.kernel_facts import facts_of


def product(equation: str, x: tuple[int | str, ...], w: tuple[int | str, ...]) -> onnx.ModelProto:
    out = [dict(zip(equation.replace(",", "").split("->")[0], (*x, *w), strict=True))[c] for c in equation[-3:]]
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", x), ("w", w))]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, out)]
    graph = helper.make_graph([helper.make_node("Einsum", ["x", "w"], ["y"], equation=equation)], "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def check(executable: lb.Executable, equation: str, x: tuple[int, ...], w: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(shape, dtype=np.float32) for shape in (x, w))
    (y,) = lb.Session(executable)(a, b)
    wanted = np.einsum(equation, a.astype(np.float64), b.astype(np.float64))
    scale = np.einsum(equation, np.abs(a).astype(np.float64), np.abs(b).astype(np.float64))
    # Sums of k rounded terms in blocks: each block's and each lane's chain is short (passes/lower/sum_blocks.py).
    assert (np.abs(np.asarray(y) - wanted) <= 16 * 2.0**-24 * scale).all()


def test_blocks_have_rows_of_both_operands() -> None:
    executable = lb.compile(product("bmk,bnk->bmn", (1, 96, 512), (1, 96, 512)), "llvm -mcpu=x86-64-v4")
    (found,) = facts_of(executable).values()
    block, along = found.schedule.split(" ", 1)
    rows, columns = map(int, block.split("x"))
    assert "along the sum" in along and rows > 1 and columns > 1


@pytest.mark.parametrize("sizes", [(8, 384, 384, 64), (1, 1024, 32, 1024), (2, 112, 20, 7)])
def test_columns_are_transposed_where_there_are_rows_enough(sizes: tuple[int, int, int, int]) -> None:
    b, m, n, k = sizes
    executable = lb.compile(product("bmk,bnk->bmn", (b, m, k), (b, n, k)), "llvm -mcpu=x86-64-v4")
    (found,) = facts_of(executable).values()
    assert "along the sum" not in found.schedule and " of 16 lanes" in found.schedule


def test_few_rows_are_in_a_block_where_all_of_them_fall_in_one_set_of_the_cache() -> None:
    executable = lb.compile(product("bmk,bnk->bmn", (1, 98, 2048), (1, 98, 2048)), "llvm -mcpu=znver4")
    (found,) = facts_of(executable).values()
    assert int(found.schedule.split("x")[0]) <= 8


@pytest.mark.sample(6)
@pytest.mark.parametrize("equation", ["bmk,bnk->bmn", "bmk,bnk->bnm", "bkm,bkn->bmn"])
@pytest.mark.parametrize(
    "sizes",
    [
        (1, 1, 1, 64),
        (2, 7, 9, 32),
        (1, 24, 17, 300),
        (3, 5, 33, 50),
        (1, 50, 3, 1000),
        (2, 120, 50, 50),
        (1, 113, 199, 300),
        (1, 150, 20, 7),
    ],
)
@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=generic", "c"])
def test_products_are_right(equation: str, sizes: tuple[int, int, int, int], target: str) -> None:
    of = dict(zip("bmnk", sizes, strict=True))
    x, w = (tuple(of[c] for c in each) for each in equation.split("->")[0].split(","))
    check(lb.compile(product(equation, x, w), target), equation, x, w)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32"])
def test_of_other_elements(dtype: str) -> None:
    rng = np.random.default_rng(4)
    model = product("bmk,bnk->bmn", (1, 130, 45), (1, 50, 45))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    x, w = (rng.integers(-4, 5, shape).astype(dtype) for shape in ((1, 130, 45), (1, 50, 45)))
    (y,) = lb.Session(lb.compile(model))(x, w)  # sums of at most 720, which are exact in each
    np.testing.assert_array_equal(np.asarray(y), np.einsum("bmk,bnk->bmn", x.astype("int64"), w.astype("int64")))


def test_what_is_copied_is_read_within_its_bounds() -> None:
    equation, x, w = "bmk,bnk->bmn", (1, 120, 37), (1, 45, 37)
    check(lb.compile(product(equation, x, w), sanitize=True), equation, x, w)


def test_of_open_extents() -> None:
    equation = "bmk,bnk->bmn"
    executable = lb.compile(product(equation, ("b", "m", "k"), ("b", "n", "k")))
    for b, m, n, k in ((1, 1, 1, 1), (2, 7, 9, 40), (1, 30, 45, 333)):
        check(executable, equation, (b, m, k), (b, n, k))


def test_open_sums_have_vectors_too() -> None:
    rows: list[int | str] = [6, "K"]
    inputs, outputs = ([helper.make_tensor_value_info(n, TensorProto.FLOAT, rows)] for n in "xy")
    nodes = [helper.make_node("Softmax", ["x"], ["y"], axis=-1)]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    executable = lb.compile(model, "llvm -mcpu=x86-64-v4")
    found = next(iter(facts_of(executable).values()))
    assert "scalars" not in found.schedule and found.schedule.count("along the sum") == 2
    session, rng = lb.Session(lb.compile(model)), np.random.default_rng(5)
    for length in (1, 2, 15, 16, 17, 63, 64, 65, 80, 100, 2047, 2048, 5000):
        x = rng.standard_normal((6, length), dtype=np.float32)
        powers = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
        # the error of exp, of a sum in blocks of 32 terms, of a division and of a product
        np.testing.assert_allclose(session(x)[0], powers / powers.sum(-1, keepdims=True), rtol=2.0**-20, atol=0)


def test_sums_that_may_be_long_enough_have_partial_sums() -> None:
    def schedule_to(longest: int) -> str:
        shape = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [6, "K"]) for name in "xy"]
        node = helper.make_node("Softmax", ["x"], ["y"], axis=-1)
        graph = helper.make_graph([node], "g", shape[:1], shape[1:])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        executable = lb.compile(model, "llvm -mcpu=x86-64-v4", dims={"K": f"1..{longest}"})
        return next(iter(facts_of(executable).values())).schedule

    assert "4 partial sums" in schedule_to(512)
    assert "partial sums" not in schedule_to(256)
