"""Numbers that quantized networks convert to integers and back stay floats, and results are equal to the bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from graphs import graph
from hypothesis import given, settings
from hypothesis import strategies as st
from native import NativeRun
from test_bufferize import build as compile_module
from xdsl.dialects import arith, linalg

from landbridge.ir.module import IRModule
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ops.comparison import saturate
from landbridge.passes.registry import run_pipeline

Step = Callable[[ScalarBuilder, Value], Value]
CASES = [0.0, -0.0, 0.25, -0.25, 0.5, -0.5, 1.5, 2.5, -1.5, 126.5, 127.5, -128.5, 1e-40, -1e-40, 3e9, -3e9, 1e38]
EDGES = np.array([*CASES, np.nan, -np.nan, np.inf, -np.inf], np.float32)
X = np.concatenate([EDGES, np.linspace(-300, 300, 11 * 16 + 7 - len(EDGES), dtype=np.float32)])
TYPES = ("int8", "uint8", "int16", "uint16")


def quantized(scale: float, zero: int | None, dtype: str) -> Step:
    """What QuantizeLinear and DequantizeLinear do, in turn."""

    def step(s: ScalarBuilder, v: Value) -> Value:
        rounded = s.math("round_even", v / scale)
        if zero is not None:
            rounded = rounded + s.cast(s.const(zero, dtype), "float32")
        q = s.cast(saturate(s, rounded, dtype), "int32")
        centered = q if zero is None else q - s.cast(s.const(zero, dtype), "int32")
        return s.cast(centered, "float32") * scale

    return step


def module_of(steps: Sequence[Step]) -> IRModule:
    def body(s: ScalarBuilder, v: Value) -> Value:
        for step in steps:
            v = step(s, v)
        return v

    return graph([(X.shape, "float32")], lambda g, x: [g.elementwise("steps", [x], body)])


def simplified(steps: Sequence[Step]) -> tuple[IRModule, list[str]]:
    """The module after the pass, and the operations of its one body, without constants."""
    module = run_pipeline(module_of(steps), ["whole_numbers"])
    ((function,),) = (module.prims().values(),)
    (generic,) = (op for op in function.walk() if isinstance(op, linalg.ops.GenericOp))
    ops = generic.body.block.ops
    return module, [op.name.split(".")[1] for op in ops if not isinstance(op, arith.ConstantOp)][:-1]


def assert_equal_bits(steps: Sequence[Step]) -> None:
    (expected,) = NativeRun(compile_module(module_of(steps)))(X)
    (found,) = NativeRun(compile_module(simplified(steps)[0]))(X)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), ~numbers)
    np.testing.assert_array_equal(found[numbers].view(np.int32), expected[numbers].view(np.int32))


@pytest.mark.parametrize("dtype", TYPES)
def test_a_quantization_and_its_inverse_stay_floats(dtype):
    steps = [quantized(0.5, 3, dtype)]
    assert_equal_bits(steps)
    of_nan = ["cmpf", "select"]
    wanted = ["divf", "roundeven", "addf", "maximumf", "minimumf", *of_nan, "subf", "mulf"]
    assert simplified(steps)[1] == wanted


def test_a_zero_without_a_sign_is_kept_where_there_is_no_zero_point():
    steps = [quantized(0.5, None, "int8")]
    assert_equal_bits(steps)
    assert simplified(steps)[1][-2:] == ["addf", "mulf"]


def test_quantizing_again_by_the_same_scale_is_dropped():
    again = [quantized(0.5, 3, "int8"), lambda s, v: v * 2.0 * 1.0000001, quantized(1.0, 3, "int8")]
    assert_equal_bits(again)
    plain = [lambda s, v: s.cast(saturate(s, s.math("round_even", v), "int8"), "float32")]
    twice = [*plain, lambda s, v: v * 1.0000001, *plain]
    assert_equal_bits(twice)
    assert simplified(twice)[1] == simplified(plain)[1]


def test_a_scale_that_is_not_near_one_rounds_again():
    plain = [lambda s, v: s.cast(saturate(s, s.math("round_even", v), "int8"), "float32")]
    twice = [*plain, lambda s, v: v * 1.005, *plain]
    assert_equal_bits(twice)
    assert simplified(twice)[1].count("roundeven") == 2


def test_a_large_number_rounds_again_as_its_product_has_few_digits_after_the_point():
    # 3200001 times this scale is 3200000.62, which is 3200000.5 in f32 and 3200000 rounded.
    nearest = lambda s, v: s.math("round_even", v)  # noqa: E731
    product = lambda s, v: s.minimum(s.maximum(nearest(s, v), -3.3e6), 3.3e6) * 0.99999988  # noqa: E731
    steps = [lambda s, v: nearest(s, product(s, v)) - s.cast(saturate(s, nearest(s, v), "int8"), "float32")]
    assert simplified(steps)[1].count("roundeven") == 3


def test_a_large_integer_is_not_above_a_bound_that_rounding_may_bring_it_to():
    def step(s: ScalarBuilder, v: Value) -> Value:
        large = s.cast(saturate(s, s.math("round_even", v), "uint8"), "int32") + s.const((1 << 30) + 1, "int32")
        return s.maximum(s.cast(large, "float32"), float((1 << 30) + 512))

    assert_equal_bits([step])


def test_what_is_truncated_stays_an_integer():
    steps = [lambda s, v: s.cast(s.cast(s.minimum(s.maximum(v, -100.0), 100.0), "int8"), "float32")]
    assert_equal_bits(steps)
    assert simplified(steps)[1][-2:] == ["fptosi", "sitofp"]


def test_a_difference_that_wraps_stays_one_of_integers():
    def step(s: ScalarBuilder, v: Value) -> Value:
        return s.cast(saturate(s, s.math("round_even", v), "int8") - s.const(100, "int8"), "float32")

    assert_equal_bits([step])
    assert "subi" in simplified([step])[1]


def _drawn(scale: float, zero: int | None, dtype: str) -> Step:
    return quantized(scale, abs(zero) if zero is not None and dtype.startswith("u") else zero, dtype)


_quantized = st.builds(
    _drawn,
    st.sampled_from([1.0, 0.5, 0.0213, 1.0000001, 3.7]),
    st.sampled_from([None, 0, 3, -128, 127]),
    st.sampled_from(TYPES),
)
_other = st.sampled_from(
    [
        lambda s, v: s.maximum(v, 0.0),
        lambda s, v: s.minimum(v, 6.0),
        lambda s, v: v + 2.25,
        lambda s, v: v * -0.75,
        lambda s, v: v * 1.0,
        lambda s, v: v - v,
        lambda s, v: v / 1.0000001,
        lambda s, v: s.math("round_even", v) + 0.0,
        lambda s, v: s.select(v > 1.0, v, 0.5),
    ]
)


@settings(max_examples=25, deadline=None)
@given(st.lists(_quantized | _other, min_size=2, max_size=8))
def test_results_are_equal_to_the_bit(steps):
    assert_equal_bits(steps)
