"""Every operator as SPIR-V: legal by spirv-val, and on a real driver against the onnx wheel's stored node tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import landbridge as lb
from landbridge.executable.device_image import DeviceImage
from landbridge.ir.module import IRModule
from landbridge.targets import Target
from tests.codegen.vulkan.launcher import check_legal, vulkan
from tests.ops import node_cases
from tests.ops.test_node_cases import NAMES


@pytest.fixture(scope="module")
def target() -> Target:
    return Target.from_device(vulkan())


def run(module: IRModule, feeds: Mapping[str, np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """The outputs of ``module`` compiled for its target and run by a Session on the device."""
    executable = lb.compile(module, module.targets[0])
    for image in executable.modules:
        if isinstance(image.image, DeviceImage):
            check_legal(image.image.code)
    session = lb.Session(executable, device=vulkan())
    for name, value in feeds.items():
        session.set_input(name, value)
    session.run()
    return [np.array(session.get_output(i).to_device("cpu")) for i in range(len(executable.main.outputs))]


@pytest.mark.sample(34)
@pytest.mark.parametrize("name", NAMES)
def test_node(name: str, target: Target) -> None:
    node_cases.check(name, target, run)
