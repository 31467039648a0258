"""Kernels made from PrimFuncs whose operands lie in scratchpads, compiled and run on sim:scratch against numpy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import landbridge as lb
from landbridge.codegen.registry import codegen_for
from landbridge.device import registry
from landbridge.errors import BindError
from landbridge.executable.executable import Executable
from landbridge.executable.instructions import AllocStorage, AllocTensor, Call, LoadConstant, ToVDevice
from landbridge.executable.parts import Function, TensorSpec, VDevice
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.types import VDeviceAttr, tensor_type
from landbridge.passes.lower import lower_prim, vector_unit_of
from landbridge.targets import Target
from landbridge.testing.sim_scratch import SimScratchDeviceAPI

TABLE, PITCHED, FLAT = "global.vtcm", "global.pitched", "global.scratch"
M, K, N = 13, 21, 37
WEIGHTS = np.random.default_rng(0).standard_normal((K, N), dtype=np.float32)


@pytest.fixture(autouse=True)
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimScratchDeviceAPI]:
    """Guards hold at the end: no kernel and no copy left its rows."""
    made = SimScratchDeviceAPI(seed=3)
    monkeypatch.setitem(registry._plugins._known, made.name, made)
    monkeypatch.setattr(registry, "_devices", {})
    yield made
    made.check_guards()
    assert not made.violations


def relu_of_product(kind: str, target: Target) -> Executable:
    """``y = max(x @ w, 0)``: x and y in rows of one storage of vdevice ``pad``, w in rows of its own."""
    place = VDeviceAttr.of(1, kind, () if kind == FLAT else (1,))
    types = [tensor_type(shape, "float32", place) for shape in ((M, K), (K, N), (M, N))]
    prim = PrimBuilder("product", types[:2], types[2:])
    x, w, y = *prim.inputs, *prim.outputs
    product = prim.temp([M, N], "float32")
    prim.generic(
        "ppr",
        [M, N, K],
        [(x, lambda i, j, k: (i, k)), (w, lambda i, j, k: (k, j))],
        [(product, lambda i, j, k: (i, j))],
        lambda s, acc, a, b: acc + a * b,
        init=0.0,
    )
    same = lambda i, j: (i, j)  # noqa: E731
    prim.generic("pp", [M, N], [(product, same)], [(y, same)], lambda s, v: s.maximum(v, 0))
    lowered = lower_prim(prim.finish(), vector_unit_of(target))
    tasks = lowered.attributes["lb.tasks"].value.data  # type: ignore[attr-defined]
    rows, separators = ((2 * M, 40), (1,)) if kind != FLAT else ((), ())
    row = 160
    instructions = (
        AllocStorage(2, 2 * M * row, 1, 128, rows, "float32"),
        AllocTensor(3, 2, 0, (M, K), "float32", "x_in", separators),
        AllocTensor(4, 2, -(-M * row // 128) * 128 if kind == FLAT else M * row, (M, N), "float32", "y_in", separators),
        LoadConstant(5, "w", 1, separators),
        ToVDevice(0, 3, "x"),
        Call(0, "product", (3, 5, 4), tasks),
        ToVDevice(4, 1, "y"),
    )
    main = Function("main", (TensorSpec("x", (M, K), "float32"),), (TensorSpec("y", (M, N), "float32"),), instructions)
    vdevices = (VDevice("main", 0), VDevice("pad", 0, kind))
    return Executable(
        {"main": main}, vdevices, (codegen_for(target.kind)(ModuleOp([lowered]), target),), {"w": WEIGHTS}
    )


def target(kind: str) -> Target:
    return Target.from_device(lb.device("sim:scratch"), kind)


@pytest.mark.sample(4)
@pytest.mark.parametrize("generator", ["llvm", "c"])
@pytest.mark.parametrize("scope", [TABLE, PITCHED, FLAT])
def test_a_kernel_works_where_its_operands_are(scope: str, generator: str) -> None:
    session = lb.Session(relu_of_product(scope, target(generator)), devices={"main": "cpu", "pad": "sim:scratch"})
    x = np.random.default_rng(1).standard_normal((M, K), dtype=np.float32)
    with lb.ledger() as moves:
        (y,) = session(x)
    expected = np.maximum(x.astype(np.float64) @ WEIGHTS, 0)
    # 21 products and sums of float32 numbers of size 1: 21 x 2^-24 of about 21
    np.testing.assert_allclose(np.asarray(y), expected, rtol=0, atol=21 * 21 * 2.0**-24)
    assert [(move.cause, move.nbytes) for move in moves] == [("to_vdevice", 4 * M * K), ("to_vdevice", 4 * M * N)]


@pytest.mark.parametrize("scope", [TABLE, PITCHED])
def test_the_same_code_where_there_are_no_rows(scope: str) -> None:
    made = relu_of_product(scope, Target("llvm"))
    flat = Executable(
        made.functions,
        (VDevice("main", 0), VDevice("pad", 0, "global")),
        made.modules,
        made.constants,
    )
    x = np.random.default_rng(2).standard_normal((M, K), dtype=np.float32)
    (scattered,) = lb.Session(made, devices={"main": "cpu", "pad": "sim:scratch"})(x)
    (dense,) = lb.Session(flat)(x)
    np.testing.assert_array_equal(np.asarray(scattered), np.asarray(dense))


def test_kernels_in_rows_are_no_packed_functions() -> None:
    module = lb.Module(relu_of_product(TABLE, Target("llvm")))
    assert list(module) == []
    with pytest.raises(KeyError, match="no kernel is called 'product'"):
        module["product"]
    assert list(lb.Module(relu_of_product(FLAT, Target("llvm")))) == ["product"]


def test_a_target_states_what_the_device_has() -> None:
    described = target("llvm")
    assert {kind.scope: kind.ndim for kind in described.memory}[TABLE] == 2
    assert Target.from_json(described.to_json()) == described


def test_a_device_whose_rows_differ_is_refused() -> None:
    declared = target("llvm").to_dict()
    for kind in declared["memory"]:
        if kind["scope"] == TABLE:
            kind["row_alignment"] = 64
    with pytest.raises(BindError, match="row_alignment is 128, the target states 64"):
        lb.Session(relu_of_product(TABLE, Target(declared)), devices={"main": "cpu", "pad": "sim:scratch"})
