"""Every operator, compiled by each generator of CPU code, against the onnx wheel's stored node tests."""

from __future__ import annotations

import pytest

from landbridge.target import Target
from tests.ops import node_cases
from tests.ops.test_node_cases import NAMES


@pytest.fixture(scope="module", params=["llvm", "c -cflags=-O1"], ids=["llvm", "c"])
def target(request: pytest.FixtureRequest) -> Target:
    """The targets; kernels of one operator are small, so that compiling C takes most of the time."""
    return Target(request.param)


@pytest.mark.parametrize("name", NAMES)
def test_node(name: str, target: Target) -> None:
    node_cases.check(name, target, node_cases.run_compiled)
