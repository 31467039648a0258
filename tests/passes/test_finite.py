"""Constants and kernels of targets that compute with no infinities."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import graph, relu

from landbridge.ir.finite import largest_finite, replace_infinities
from landbridge.ir.graph_ops import ConstantOp
from landbridge.ir.module import IRModule
from landbridge.passes.registry import run_pipeline
from landbridge.targets import Option, Target, TargetKind
from landbridge.targets import registry as targets
from landbridge.targets.arithmetic import ARITHMETIC_OPTIONS, Arithmetic, arithmetic_of

SIZES = (Option("vector-bits", "int", "Bits.", 128), Option("vector-registers", "int", "Registers.", 16))
KIND = TargetKind("saturating", "has no infinities", (*SIZES, *ARITHMETIC_OPTIONS), ("saturating",))


@pytest.fixture(autouse=True)
def known(monkeypatch):
    monkeypatch.setitem(targets._kinds._known, KIND.name, KIND)
    monkeypatch.setitem(targets._kinds._registered, KIND.name, "tests")


@pytest.mark.parametrize(("text", "finite"), [("saturating -infinities=0", True), ("saturating", False)])
def test_constants_have_the_largest_finite_numbers(text, finite):
    mask = np.array([0, -np.inf, np.inf, np.nan], np.float32)
    module = graph([], lambda g: [relu(g, g.constant(mask, "mask"))])
    module.targets = (Target(text),)
    module = run_pipeline(module, ["finite"])
    (constant,) = [op for op in module.main.walk() if isinstance(op, ConstantOp)]
    largest = np.finfo(np.float32).max
    wanted = np.array([0, -largest, largest, np.nan], np.float32) if finite else mask
    np.testing.assert_array_equal(module.constants[constant.symbol_name], wanted)
    assert list(module.constants) == [constant.symbol_name]
    assert np.isinf(mask[1])  # the model's own is as it was


@pytest.mark.parametrize(("type", "value", "wanted"), [
    ("f32", "0xFF800000", "-3.40282347e+38"),
    ("f16", "0x7C00", "6.550400e+04"),
    ("vector<4xf32>", "dense<0x7F800000>", "dense<3.40282347e+38>"),
    ("f32", "1.500000e+00", "1.500000e+00"),
])  # fmt: skip
def test_kernels_have_the_largest_finite_numbers(type, value, wanted):
    text = "builtin.module {{\n  func.func @f() {{\n    %0 = arith.constant {} : {}\n    func.return\n  }}\n}}"
    module, expected = (IRModule.parse(text.format(each, type), (Target("llvm"),)) for each in (value, wanted))
    replace_infinities(module.op)
    assert str(module) == str(expected)


def test_largest_numbers():
    assert largest_finite("bfloat16") == float.fromhex("0x1.fep127")
    assert largest_finite("float16") == 65504


def test_the_options_of_a_target_are_its_arithmetic():
    assert arithmetic_of(Target("saturating -denormals=flush -infinities=0 -contraction=free")) == Arithmetic(
        flushes_denormals=True, infinities=False, free_contraction=True
    )
    assert arithmetic_of(Target("llvm")).flushes_denormals is True
    assert arithmetic_of(Target("opencl")) == Arithmetic()
