"""Where the Sessions of a test have their tensors: in the host's memory, and in memory that it shares with sim:lazy.

A test module imports ``where``, a fixture for all its tests, and makes its Sessions with ``session``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import landbridge as lb
from landbridge.executable.parts import ModuleImage, VDevice
from landbridge.targets import Target
from landbridge.testing.sim_lazy import SimLazyDeviceAPI


class On:
    """The place of the test that runs."""

    device: Any = "cpu"
    scope = "global"


@pytest.fixture(autouse=True, params=["cpu", "sim:lazy"])
def where(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Memory of the host, and memory that the host shares with a device which does everything late."""
    if request.param == "cpu":
        yield
        return
    found = lb.device("sim:lazy")
    monkeypatch.setattr(On, "device", found)
    monkeypatch.setattr(On, "scope", "shared")
    yield
    assert isinstance(found.api, SimLazyDeviceAPI)
    assert not found.api.violations


def session(executable: lb.Executable, **options: Any) -> lb.Session:
    """A Session of one thread, unless ``options`` say otherwise, with the tensors of ``executable`` in that place."""
    if On.scope != "global" and "devices" not in options and [v.scope for v in executable.vdevices] == ["global"]:
        target = Target({"kind": "llvm", "memory": [On.device.memory_kind(On.scope)]})
        modules = tuple(ModuleImage(target.to_json(), m.image) for m in executable.modules)
        executable = replace(executable, vdevices=(VDevice("main", 0, On.scope),), modules=modules)
        options = {"device": On.device} | options
    return lb.Session(executable, **{"num_threads": 1} | options)


def empty(shape: tuple[int, ...], dtype: str = "float32") -> lb.Tensor:
    """A new Tensor in that place."""
    return lb.empty(shape, dtype=dtype, device=On.device, scope=On.scope)
