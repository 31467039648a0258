"""Kernels are lowered in groups, and finished ones are told of meanwhile: the result is that of one after the other."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from xdsl.dialects import func

import landbridge as lb
from landbridge.codegen.llvm import compile_jobs, image
from landbridge.compiler import compilation
from landbridge.errors import AccessError, CodegenError
from landbridge.ir.kernel_attributes import is_prim
from landbridge.passes.lower import in_groups, lower_module


def products_and_sums() -> ModelProto:
    """Products of three widths with a Relu, which are one code, each but the first after a kernel of another kind."""
    rng = np.random.default_rng(0)
    widths = (64, 64, 128, 64)
    nodes, arrays, last = [], [], "x"
    for i, shape in enumerate(pairwise(widths)):
        arrays.append(numpy_helper.from_array((rng.standard_normal(shape) / 8).astype(np.float32), f"w{i}"))
        nodes += [
            helper.make_node("MatMul", [last, f"w{i}"], [f"p{i}"], name=f"product{i}"),
            helper.make_node("Relu", [f"p{i}"], [f"r{i}"], name=f"relu{i}"),
        ]
        last = f"r{i}"
        if i < 2:
            inputs = [[last], [last, "axis"]][i]
            nodes.append(helper.make_node(("Softmax", "CumSum")[i], inputs, [f"s{i}"], name=f"other{i}"))
            last = f"s{i}"
    nodes[-1].output[0] = "y"
    arrays.append(numpy_helper.from_array(np.array(1), "axis"))
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", (96, 64)), ("y", (96, 64))))
    graph = helper.make_graph(nodes, "products", [x], [y], arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any, dict[str, str], dict[str, Any]]]:
    """Of each compile the module before and after, the text of each function when it was finished, and variants."""
    found = []
    lower_kernels = compilation.lower_kernels

    def keep(module: Any, finished: Callable[[func.FuncOp], None], *args: Any, **options: Any) -> Any:
        texts: dict[str, str] = {}

        def tell(function: func.FuncOp) -> None:
            texts[function.sym_name.data] = str(function)
            finished(function)

        made, variants = lower_kernels(module, tell, *args, **options)
        found.append((module, made, texts, variants))
        return made, variants

    monkeypatch.setattr(compilation, "lower_kernels", keep)
    return found


def test_what_is_finished_stays_and_keeps_its_order(lowered: Any) -> None:
    lb.compile(products_and_sums())
    ((module, made, texts, variants),) = lowered
    assert {function.sym_name.data: str(function) for function in made.body.block.ops} == texts
    one_by_one = [op.sym_name.data for op in lower_module(module).body.block.ops if isinstance(op, func.FuncOp)]
    names = [op.sym_name.data for op in made.body.block.ops]
    assert names == [name for name in one_by_one if name in texts]
    assert len({variant.function for variant in variants.values()}) == 1 and len(variants) == 3
    assert list(texts) == sorted(names, key=lambda name: "matmul" in name), "the products are the larger group"


def test_the_code_is_the_same_without_groups_and_without_helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    model = products_and_sums()
    codes = [lb.compile(model).modules[0].image]
    monkeypatch.setattr(compile_jobs, "_WORTH_A_HELPER", 1)
    codes.append(lb.compile(model).modules[0].image)
    monkeypatch.setattr(compile_jobs, "usable_cores", lambda: 1)
    codes.append(lb.compile(model).modules[0].image)
    monkeypatch.setattr(in_groups, "_groups", lambda prims, on_host: [list(prims)])
    codes.append(lb.compile(model).modules[0].image)
    assert all((code.code, code.symbols) == (codes[0].code, codes[0].symbols) for code in codes[1:])


@pytest.mark.parametrize("first", [0, 1, 2, 3, 4])
def test_the_first_kernel_that_cannot_be_lowered_is_the_error(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many fail as come after it, whichever are lowered before."""
    lowering_for, names = in_groups.lowering_for, list[str]()

    def failing(target: Any, *args: Any, **options: Any) -> Any:
        lower = lowering_for(target, *args, **options)

        def lowering(prim: func.FuncOp) -> func.FuncOp:
            block = prim.parent
            assert block is not None
            names[:] = [op.sym_name.data for op in block.ops if isinstance(op, func.FuncOp) and is_prim(op)]
            if names.index(prim.sym_name.data) >= first:
                raise AccessError(f"not proved: {prim.sym_name.data}")
            return lower(prim)

        return lowering

    monkeypatch.setattr(in_groups, "lowering_for", failing)
    with pytest.raises(AccessError) as caught:
        lb.compile(products_and_sums())
    assert str(caught.value).startswith(f"not proved: {names[first]}. ")


def test_an_error_of_lowering_comes_before_one_of_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first groups are printed, and rejected, before the last is lowered."""

    def reject(functions: Any, isa: Any) -> str:
        raise CodegenError("no LLVM form")

    monkeypatch.setattr(image, "print_functions", reject)
    with pytest.raises(CodegenError, match="no LLVM form"):
        lb.compile(products_and_sums())
    share_code = in_groups.share_code

    def unproved(functions: Any, on_host: Any) -> Any:
        if len(functions) > 1:
            raise AccessError("not proved")
        return share_code(functions, on_host)

    monkeypatch.setattr(in_groups, "share_code", unproved)
    with pytest.raises(AccessError, match="not proved"):
        lb.compile(products_and_sums())
