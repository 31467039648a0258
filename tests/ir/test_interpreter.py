"""The oracle itself: layouts, both paths of contractions, integers by their sign, reads that must not happen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, FunctionType, ModuleOp, StringAttr
from xdsl.ir import Block, Region

import tests.ir.interpreter as interpreter
from landbridge.ir.graph_builder import GraphBuilder
from landbridge.ir.module import IRModule
from landbridge.ir.types import tensor_type
from landbridge.targets import Target

RNG = np.random.default_rng(3)


def module_of(inputs, build):
    """@main over ``inputs`` {name: (shape, dtype)}; ``build(g, *values)`` gives its results."""
    block = Block(arg_types=[tensor_type(shape, dtype) for shape, dtype in inputs.values()])
    module = IRModule(ModuleOp([]), (Target("llvm"),))
    results = build(GraphBuilder(module, block), *block.args)
    block.add_op(func.ReturnOp(*results))
    types = FunctionType.from_lists([a.type for a in block.args], [r.type for r in results])
    main = func.FuncOp("main", types, Region(block))
    main.attributes["lb.input_names"] = ArrayAttr([StringAttr(n) for n in inputs])
    main.attributes["lb.output_names"] = ArrayAttr([StringAttr(f"o{i}") for i in range(len(results))])
    module.op.body.block.add_op(main)
    return module


def test_pack_puts_tiles_innermost() -> None:
    a = np.arange(2 * 5 * 3, dtype=np.float32).reshape(2, 5, 3)
    packed = interpreter.pack(a, [1], [4])
    assert packed.shape == (2, 2, 3, 4)
    for n, c, w in np.ndindex(2, 5, 3):
        assert packed[n, c // 4, w, c % 4] == a[n, c, w]
    assert np.isnan(packed[:, 1, :, 1:]).all()  # past the logical extent


@given(st.data())
def test_unpack_inverts_pack(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, max_size=3))
    tiles = [data.draw(st.sampled_from([1, 2, 4])) for _ in axes]
    a = RNG.normal(size=shape).astype(np.float32)
    np.testing.assert_array_equal(interpreter.unpack(interpreter.pack(a, axes, tiles), axes, shape), a)


def convolution(g, x, w):
    def build(p):
        p.generic(
            "ppprrr",
            (3, 5, 6, 2, 3, 2),
            [
                (p.inputs[0], lambda o, h, v, i, a, b: [i, h * 2 + a, v + b]),
                (p.inputs[1], lambda o, h, v, i, a, b: [o, i, a, b]),
            ],
            [(p.outputs[0], lambda o, h, v, *r: [o, h, v])],
            lambda s, acc, a, b: acc + a * b,
            init=0,
        )

    return g.call("conv", [x, w], [((3, 5, 6), "float32")], build)


def test_both_paths_of_a_contraction_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = RNG.normal(size=(2, 11, 7)).astype(np.float32), RNG.normal(size=(3, 2, 3, 2)).astype(np.float32)
    module = module_of({"x": (x.shape, "float32"), "w": (w.shape, "float32")}, convolution)
    (fast,) = interpreter.run_module(module, {"x": x, "w": w})
    monkeypatch.setattr(interpreter, "_contraction", lambda g: None)
    monkeypatch.setattr(interpreter, "CHUNK", 7)  # chunks smaller than a row
    (slow,) = interpreter.run_module(module, {"x": x, "w": w})
    np.testing.assert_allclose(fast, slow, rtol=1e-5, atol=1e-5)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 2), (1, 2))[:, ::2]
    np.testing.assert_allclose(fast, np.einsum("ihvab,oiab->ohv", windows, w), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "uint64"])
def test_integers_keep_their_sign(dtype: str) -> None:
    info = np.iinfo(dtype)
    a = np.array([info.max, info.min, 7, info.max - 2], dtype)
    b = np.array([2, 3, 2, 5], dtype)
    module = module_of(
        {"a": ((4,), dtype), "b": ((4,), dtype)},
        lambda g, x, y: [
            g.elementwise("div", [x, y], lambda s, p, q: p / q),
            g.elementwise("less", [x, y], lambda s, p, q: p < q, "bool"),
            g.elementwise("widen", [x], lambda s, p: s.cast(p, "float64"), "float64"),
        ],
    )
    quotient, less, wide = interpreter.run_module(module, {"a": a, "b": b})
    np.testing.assert_array_equal(quotient, (a.astype(object) / b.astype(object)).astype("int64").astype(dtype)
                                  if info.bits < 64 else a // b)  # fmt: skip
    np.testing.assert_array_equal(less, a < b)
    np.testing.assert_array_equal(wide, a.astype(np.float64))


def test_load_out_of_bounds_is_found() -> None:
    def build(p):
        def body(s):
            return s.load(p.inputs[0], [s.binary("add", s.index(0), 1)], "float32")

        p.generic("p", (4,), [], [(p.outputs[0], lambda i: [i])], body)

    module = module_of({"x": ((4,), "float32")}, lambda g, x: g.call("shift", [x], [((4,), "float32")], build))
    with pytest.raises(IndexError, match=r"1\.\.4 of 4"):
        interpreter.run_module(module, {"x": np.zeros(4, np.float32)})


def test_what_is_not_written_is_poison() -> None:
    """A kernel that fills half of its output leaves NaN in the rest."""

    def build(p):
        p.generic("p", (2,), [(p.inputs[0], lambda i: [i])], [(p.outputs[0], lambda i: [i * 2])], lambda s, v: v)

    module = module_of({"x": ((4,), "float32")}, lambda g, x: g.call("half", [x], [((4,), "float32")], build))
    (y,) = interpreter.run_module(module, {"x": np.ones(4, np.float32)})
    np.testing.assert_array_equal(np.isnan(y), [False, True, False, True])


def test_inputs_are_checked() -> None:
    module = module_of({"x": ((4,), "float32")}, lambda g, x: [g.elementwise("n", [x], lambda s, v: -v)])
    with pytest.raises(ValueError, match="'x'"):
        interpreter.run_module(module, {"x": np.zeros(5, np.float32)})
