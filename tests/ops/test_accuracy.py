"""Every operator states how exact it is, and a bound means what it says."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from landbridge.errors import CompileError
from landbridge.operators import REGISTRY, Kernel
from landbridge.ops.accuracy import EXACT, ROUNDED, Accuracy, accuracy_of, spacing
from tests.ops.accuracy_table import PAGE, table

OPSET = 22


def test_every_operator_states_its_accuracy() -> None:
    known = {each.op_type for each in REGISTRY.of_kind(Kernel) if not each.domain}
    versions = [
        (name, opset) for name in known for opset in range(1, OPSET + 1) if REGISTRY.find(Kernel, "", name, opset)
    ]
    silent = {name for name, opset in versions if accuracy_of("", name, opset) is None}
    assert not silent, "state @accuracy(...) above the def of their handlers"


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_spacing_is_the_distance_of_neighbours(dtype: str) -> None:
    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    info = ml_dtypes.finfo(kind)
    tiny, large = float(info.smallest_subnormal), float(info.max)
    assert spacing(np.array([0.0, tiny, -tiny]), dtype).tolist() == [tiny] * 3
    eps = float(info.eps)
    np.testing.assert_array_equal(spacing(np.array([1.0, 1.9, -2.0]), dtype), [eps, eps, 2 * eps])
    last = large - float(np.nextafter(np.array(large, kind), kind.type(0)))
    assert spacing(np.array(large), dtype) == last


def test_tolerance_of_each_kind_of_bound() -> None:
    want = np.array([1.0, np.inf, np.nan])
    assert EXACT.tolerance(want, "float32").tolist() == [0, 0, 0]
    assert ROUNDED.tolerance(want, "float32").tolist() == [2.0**-24, 0, 0]
    assert ROUNDED.tolerance(want, "int32").tolist() == [0, 0, 0]
    assert Accuracy(2).tolerance(want, "float16")[0] == 2.0**-11 + 2.0**-22
    assert Accuracy(2, float64=1).tolerance(want, "float64")[0] == 2.0**-52
    assert Accuracy(2, targets={"opencl": 3}).tolerance(want, "float32", "opencl")[0] == 3 * 2.0**-23
    sums = Accuracy(4, sums=True)
    assert sums.tolerance(want, "float32", condition=np.full(3, 8.0))[0] == 32 * 2.0**-23 + 4 * 2.0**-149
    with pytest.raises(CompileError, match="condition"):
        sums.tolerance(want, "float32")
    with pytest.raises(CompileError, match=r"ai\.onnx\.Nothing of opset 22 has no kernel"):
        accuracy_of("", "Nothing", OPSET)


def test_the_former_order_of_arguments() -> None:
    wanted = accuracy_of("", "Exp", 21)
    assert wanted is not None
    with pytest.warns(DeprecationWarning, match="call accuracy_of"):
        assert accuracy_of("Exp", 21) is wanted
    with pytest.warns(DeprecationWarning):
        assert accuracy_of("Exp", opset=21) is wanted
    with pytest.warns(DeprecationWarning):
        assert accuracy_of("Scaler", 3, "ai.onnx.ml") is accuracy_of("ai.onnx.ml", "Scaler", 3)


def test_the_page_lists_the_bounds() -> None:
    assert table() in PAGE.read_text(encoding="utf-8"), "python -m tests.ops.accuracy_table writes them anew"
