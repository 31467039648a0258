"""The bounds of the suite's arithmetic: no smaller than what operators declare, and met by what is right alone."""

from __future__ import annotations

import numpy as np
import pytest

import landbridge as lb
from landbridge.dtypes import numpy_dtype
from landbridge.ops.accuracy import accuracy_of
from landbridge.testing.conformance import arithmetic_cases as cases
from landbridge.testing.conformance.computations import (
    EPS_OF_TERMS,
    OPSET,
    ULP,
    ULP_OF_DOUBLES,
    Computation,
    _compiled,
)


def every() -> list[Computation]:
    found = [*cases.bytes_products(), cases.many_rows(7)]
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        found += [*cases.basic(dtype), *cases.functions(dtype)]
        found += cases.reductions(dtype) if dtype != "float64" else []
        found += cases.casts(dtype) if dtype in ("float16", "bfloat16") else []
    for dtype in ("int8", "uint8", "int32", "int64"):
        shifts = ("BitShift",) if dtype == "uint8" else ()
        found += cases.integers(dtype, ("Add", "Sub", "Mul", "Div", "Mod", "Greater", *shifts))
    return found


def rounded(wanted: np.ndarray, dtype: str) -> np.ndarray:
    return wanted.astype(numpy_dtype(dtype))


@pytest.mark.parametrize("op", sorted({*ULP, *EPS_OF_TERMS, *ULP_OF_DOUBLES}))
def test_no_bound_is_below_what_the_operator_declares(op: str) -> None:
    declared = accuracy_of("", op, OPSET)
    assert declared is not None
    for kind in ("llvm", "c", "opencl", "vulkan"):
        bounds = EPS_OF_TERMS if declared.sums else ULP
        eight_bits = op == "DequantizeLinear"  # declared for int32; of fewer bits 0.5
        assert bounds[op] >= (0.5 if eight_bits else declared.bound("float32", kind))


@pytest.mark.parametrize("each", every(), ids=str)
def test_the_right_result_is_legal_and_one_beside_it_is_not(each: Computation) -> None:
    right = rounded(each.wanted, each.result)
    assert each.difference(right) is None
    wrong, first = right.copy().reshape(-1), np.ravel(each.wanted)[0]
    if wrong.dtype == bool:
        wrong[0] = not first
    elif wrong.dtype.kind in "iu":
        wrong[0] = first - 1 if first > 0 else first + 1
    else:
        wrong[0] = first + (3 * np.ravel(each.legal_error)[0] or abs(first) + 1)
    difference = each.difference(wrong.reshape(right.shape))
    assert difference is not None and str(each) in difference and "1 of" in difference


def test_results_are_no_denormal_numbers() -> None:
    for each in every():
        if each.result in ("float16", "bfloat16", "float32", "float64"):
            least = {"float16": 2.0**-14, "float64": 2.0**-1022}.get(each.result, 2.0**-126)
            assert ((abs(each.wanted) >= least) | (each.wanted == 0)).all(), str(each)


def test_what_a_target_has_no_kernel_of_is_left_out_and_the_reason_stated() -> None:
    target = lb.Target("vulkan -fp64=false")
    single, double = (cases.functions(dtype)[0] for dtype in ("float32", "float64"))
    executable, numbers, refusals = _compiled([double, single, double], target)
    assert executable is not None and list(numbers) == [1]
    assert len(refusals) == 2 and refusals[0].startswith("Exp of float64, 1003: ") and "f64" in refusals[0]
    assert _compiled([double], target)[0] is None
