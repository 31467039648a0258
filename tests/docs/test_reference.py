"""The API reference: it builds without a warning, and everything public has a docstring of its own."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import landbridge as lb
from landbridge.device import api, protocols

ROOT = Path(__file__).parents[2]
_CLASS_MEMBERS = (property, classmethod, staticmethod, type(lambda: None))


def public() -> Iterator[tuple[str, object]]:
    """Name and object of all that the package, and the contract of devices, make public."""
    for name in lb.__all__:
        yield f"landbridge.{name}", getattr(lb, name)
    for module in (api, protocols):
        for name, value in vars(module).items():
            if inspect.isclass(value) and value.__module__ == module.__name__:
                yield f"{module.__name__}.{name}", value


def members(value: object) -> Iterator[tuple[str, object]]:
    """Public methods and properties that a class itself defines."""
    if inspect.isclass(value):
        for name, member in vars(value).items():
            if not name.startswith("_") and isinstance(member, _CLASS_MEMBERS):
                yield name, member


@pytest.mark.parametrize("name, value", [pytest.param(*entry, id=entry[0]) for entry in public()])
def test_everything_public_has_a_docstring(name, value):
    inherited = {base.__doc__ for base in getattr(value, "__mro__", ())[1:]}
    generated = f"{getattr(value, '__name__', '')}("  # what a dataclass makes of its fields
    assert value.__doc__ and value.__doc__ not in inherited and not value.__doc__.startswith(generated), name
    missing = [member for member, found in members(value) if not found.__doc__]
    assert not missing, f"{name}: {', '.join(missing)}"


def test_all_lists_every_public_name():
    errors = import_module("landbridge.errors")
    raised = {name for name, value in vars(errors).items() if inspect.isclass(value) and not name.startswith("_")}
    assert raised | {"device", "compile", "Session", "Tensor", "Target"} <= set(lb.__all__)
    assert len(set(lb.__all__)) == len(lb.__all__)


@pytest.mark.full
def test_the_reference_builds_without_warnings(tmp_path):
    build = [sys.executable, str(ROOT / "docs" / "reference.py"), str(tmp_path)]
    done = subprocess.run(build, capture_output=True, text=True, timeout=240, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    session = (tmp_path / "landbridge.html").read_text()
    assert "set_input_zero_copy" in session and "CopyForbiddenError" in session
    assert "begin_host_access" in (tmp_path / "landbridge" / "device" / "protocols.html").read_text()
