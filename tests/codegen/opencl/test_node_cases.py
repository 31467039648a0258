"""Every operator as OpenCL C on a real driver, against the onnx wheel's stored node tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import landbridge as lb
from landbridge.ir.module import IRModule
from landbridge.targets import Target
from tests.codegen.opencl.machine import run_executable
from tests.ops import node_cases
from tests.ops.test_node_cases import NAMES

#: A GPU's schedules, and those for a CPU's driver.
TARGETS = {
    "gpu": "opencl -fp64=1",
    "cpu": "opencl -device-class=cpu -fp64=1 -vector-bits=512 -vector-registers=32",
}
#: Cases whose kernels run on the CPU beside: loops of scalar code.
ON_THE_CPU = ("maxunpool_export", "tfidfvectorizer")


def run(module: IRModule, feeds: Mapping[str, np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """The outputs of ``module`` compiled for its target."""
    return run_executable(lb.compile(module, module.targets[0]), feeds)


@pytest.mark.sample(24, rarer=3)  # PoCL takes a quarter of a second to begin a program
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", [name for name in NAMES if not any(each in name for each in ON_THE_CPU)])
def test_node(target: str, name: str) -> None:
    node_cases.check(name, Target(TARGETS[target]), run)
