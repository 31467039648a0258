"""Vulkan devices for tests: real ones of a driver, in the ways the device can be used."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from landbridge.device import registry
from landbridge.device.api import Device
from landbridge.devices.vulkan import VulkanDeviceAPI
from landbridge.memory.allocators import default
from tests.devices.present import first_instance

#: Ways to use one driver: as it is, without coherent memory, and without memory that both sides share.
VARIANTS = {
    "as it is": {},
    "not coherent": {"coherent": False},
    "not unified": {"unified": False},
    "neither": {"coherent": False, "unified": False},
}


def make_api(**options: bool) -> VulkanDeviceAPI:
    """A device API of its own; skips the test where there is no device, with the reason."""
    first_instance("vulkan")
    return VulkanDeviceAPI(**options)


def use_api(api: VulkanDeviceAPI, patch: pytest.MonkeyPatch) -> Device:
    """``vulkan:0`` of ``api``, which the registry gives out until the end of the test; its allocators end then too."""
    for known in ("_named", "_chosen", "_in_use"):
        patch.setattr(default, known, dict(getattr(default, known)))
    patch.setitem(registry._plugins._known, api.name, api)
    patch.setitem(registry._types, 7, api.name)
    patch.setattr(registry, "_devices", {name: d for name, d in registry._devices.items() if d.name != api.name})
    return registry.device("vulkan:0")


@pytest.fixture(params=VARIANTS)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    """``vulkan:0``, used in each of the VARIANTS."""
    api = make_api(**VARIANTS[request.param])
    yield use_api(api, monkeypatch)
    api.close(0)


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    """``vulkan:0`` as its driver is."""
    api = make_api()
    yield use_api(api, monkeypatch)
    api.close(0)
