"""Every operator in WebAssembly, run by Wasmtime, against the onnx wheel's stored node tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import landbridge as lb
from landbridge.ir.module import IRModule
from landbridge.targets import Target
from tests.ops import node_cases
from tests.ops.test_node_cases import NAMES

TARGET = Target("wasm")


def run(module: IRModule, feeds: Mapping[str, np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """The outputs of ``module`` compiled for its target and run by a Session on the device."""
    executable = lb.compile(module, module.targets[0])
    session = lb.Session(executable, device="wasm")
    for name, value in feeds.items():
        session.set_input(name, value)
    session.run()
    return [np.array(session.get_output(i).to_device("cpu")) for i in range(len(executable.main.outputs))]


@pytest.mark.sample(34)
@pytest.mark.parametrize("name", NAMES)
def test_node(name: str) -> None:
    node_cases.check(name, TARGET, run)
