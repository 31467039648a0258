"""The conformance suite on sanitized devices, and their abilities."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from landbridge.device import protocols
from landbridge.device.registry import device as find_device
from landbridge.device.registry import names
from landbridge.memory.allocators.keepers import trim
from landbridge.testing.conformance import DeviceConformance
from landbridge.testing.conformance.isolation import IsolatedConformance
from tests.devices.present import first_instance

BUILT_IN = ("cpu", "opencl", "vulkan", "sim:lazy", "sim:scratch", "sim:board")


@pytest.fixture(scope="class")
def nothing_retained():
    """What pools of earlier tests keep of the small memories of the inner device is given back."""
    trim(find_device("sim:scratch"))


class TestSimBoard(DeviceConformance):
    device_name = "sanitize(sim:board)"


class TestSimLazy(DeviceConformance):
    device_name = "sanitize(sim:lazy)"


class TestCpu(DeviceConformance):
    device_name = "sanitize(cpu)"


@pytest.mark.usefixtures("nothing_retained")
class TestSimScratch(DeviceConformance):
    device_name = "sanitize(sim:scratch)"


@pytest.mark.parametrize("name", BUILT_IN)
def test_it_has_the_abilities_of_the_inner_device_and_no_other(name):
    if name in ("opencl", "vulkan"):
        first_instance(name)
    inner, wrapped = find_device(name), find_device(f"sanitize({name})")
    requested = [each for each in vars(protocols).values() if getattr(each, "_is_runtime_protocol", False)]
    assert requested
    for protocol in requested:
        assert (wrapped.capability(protocol) is None) == (inner.capability(protocol) is None), protocol
    for scope, kind in inner.memory_kinds.items():
        assert wrapped.memory_kind(scope) == replace(kind, allocators=wrapped.memory_kind(scope).allocators)
    assert wrapped != inner


def test_the_same_device_is_wrapped_once():
    assert find_device("sanitize(sim:lazy)") == find_device("sanitize(sanitize(sim:lazy))")
    assert find_device("sanitize(sim:lazy)").api is find_device("sanitize(sim:lazy:1)").api
    assert "sanitize" not in names()


def test_a_variable_sanitizes_every_device_and_a_leak_is_reported_at_exit():
    program = (
        "from landbridge.device.registry import device\n"
        "from landbridge.sanitizer.sanitized import SanitizedDevice\n"
        "cpu, lazy = device('cpu'), device('sim:lazy')\n"
        "assert isinstance(cpu.api, SanitizedDevice) and isinstance(lazy.api, SanitizedDevice)\n"
        "lazy.api.alloc_data_space(0, 48, 1, 'global', None)\n"
    )
    environment = os.environ | {"LANDBRIDGE_SANITIZE": "1"}
    child = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert child.returncode == 0, child.stderr
    assert child.stderr.startswith("sanitizer: leak: 48 bytes of scope 'global' of sim:lazy:0")


def test_the_suite_in_processes_of_its_own_takes_a_wrapper():
    with IsolatedConformance("sanitize(sim:lazy)") as suite:
        assert [result.outcome for result in suite.run(["test_alignment"])] == ["pass"]
