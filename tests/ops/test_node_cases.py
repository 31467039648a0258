"""Every operator against the onnx wheel's stored node tests, through the interpreter of the IR."""

from __future__ import annotations

import pytest

from landbridge.operators import REGISTRY, Kernel
from landbridge.targets import Target
from tests.ops import node_cases

#: What these cases need is not compiled: narrow floats and integers, strings, sequences, training, results whose
#: shape is an input's value.
EXCLUDED = "|".join(
    [
        "FLOAT[48]",
        "INT[24]",
        "_e4m3fn",
        "_e5m2",
        "float4e2m1",
        "(^|_)u?int[24]($|_)",
        "e8m0",
        "string|STRING",
        "sequence_map|_seq|optional|identity_opt",
        "training",
        "test_constantofshape",
        "test_range_",
        "window",
        "quantizelinear_blocked",
        "test_not_[234]d",  # opset 1
        "test_loop",
        "nonmaxsuppression|unique",  # the data decide how many rows there are: tests/host_operators/test_families.py
        "test_scan_sum",  # opset 8
        "bernoulli",
        "test_ai_onnx_ml|adagrad|adam|momentum",
        "_expanded",
        "strnorm|regex|label_encoder",
        "resize_downsample_scales_(linear|cubic)_align_corners$",  # as onnxruntime has it: docs/numbers.md, "Resize"
    ]
)
OPERATORS = {each.op_type for each in REGISTRY.of_kind(Kernel) if not each.domain}
NAMES = node_cases.names(sorted(OPERATORS), EXCLUDED)


@pytest.fixture(scope="module")
def target() -> Target:
    return Target("llvm")


@pytest.mark.parametrize("name", NAMES)
def test_node(name: str, target: Target) -> None:
    node_cases.check(name, target)


def test_operators_are_covered() -> None:
    """An operator with a handler has a case here, unless the suite has none (of opset 7 or newer) for it."""
    covered = {n.op_type for name in NAMES for n in node_cases.cases()[name].model.graph.node}
    uncovered = OPERATORS - covered
    assert uncovered <= {
        "Constant", "ConstantOfShape", "GlobalLpPool", "LpNormalization", "MaxRoiPool", "NonMaxSuppression", "Not",
        "Range", "Scatter", "Unique", "Upsample",
    }  # fmt: skip
