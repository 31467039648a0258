"""What an error proposes is a device that runs the program."""

from __future__ import annotations

import re

import pytest

import landbridge as lb
from landbridge.errors import LandbridgeError
from landbridge.targets.registry import get_kind
from tests.devices.present import first_instance
from tests.whole_models.small_models import add

DEVICES = ("cpu", "opencl", "vulkan", "sim:lazy", "sim:scratch")


@pytest.mark.parametrize("kind", ["llvm", "c", "opencl", "vulkan"])
def test_a_device_that_cannot_run_a_program_names_one_that_can(kind: str) -> None:
    executable = lb.compile(add(), kind)
    refused = []
    for name in DEVICES:
        if name in ("opencl", "vulkan"):
            first_instance(name)
        try:
            lb.Session(executable, device=name)
        except LandbridgeError as error:
            refused.append(name)
            proposed = re.findall(r'device="([^"]*)"', str(error))
            assert proposed == [get_kind(kind).device_types[0]], error
    assert refused
