"""A device and its target kind that are known for the length of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from landbridge.codegen import registry as codegens
from landbridge.device import registry
from landbridge.device.api import DeviceAPI
from landbridge.targets import registry as targets
from landbridge.testing.conformance import computations
from tests.testing.c_kernels import KIND, generate


@contextmanager
def admitted(api: DeviceAPI) -> Iterator[None]:
    """``api`` is known as a mutant, without the checks of the registry, some of which one would fail."""
    registry.device("cpu")  # which tests copy to: what they find of it now stays known after them
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(targets._kinds._known, KIND.name, KIND)
        patch.setitem(targets._kinds._registered, KIND.name, "tests")
        patch.setitem(codegens._codegens._known, KIND.name, partial(generate, edit=getattr(api, "edited", str)))
        patch.setitem(codegens._codegens._registered, KIND.name, "tests")
        if hasattr(api, "edited"):
            patch.setattr(computations, "_programs", {})  # those of this process are of kernels that are not edited
        patch.setitem(registry._plugins._known, "mutant", api)
        patch.setattr(registry, "_types", {**registry._types, api.device_type or 5000: "mutant"})
        patch.setattr(registry, "_devices", {})
        yield
