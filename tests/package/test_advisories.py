"""No version with a known advisory is asked for, nor installed where these tests run."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
ADVISORIES: list[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "advisories.toml").read_text())["advisory"]


def requested() -> Iterator[Requirement]:
    """What the package and each of its extras ask for."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    for texts in (project["dependencies"], *project["optional-dependencies"].values()):
        yield from map(Requirement, texts)


def least(requirement: Requirement) -> Version:
    """The lower bound of ``requirement``."""
    bounds = [Version(each.version) for each in requirement.specifier if each.operator in (">=", "==", "~=")]
    assert bounds, f"{requirement} has no lower bound"
    return max(bounds)


@pytest.mark.parametrize("advisory", ADVISORIES, ids=lambda advisory: advisory["ids"][0])
def test_lower_bounds_exclude_it(advisory):
    name, fixed = canonicalize_name(advisory["package"]), Version(advisory["fixed"])
    found = [each for each in requested() if canonicalize_name(each.name) == name]
    assert found, f"{name} is asked for no more; its advisories can go"
    for requirement in found:
        assert least(requirement) >= fixed, f"{requirement} allows {', '.join(advisory['ids'])}; ask for >={fixed}"


@pytest.mark.parametrize("advisory", ADVISORIES, ids=lambda advisory: advisory["ids"][0])
def test_what_is_installed_does_not_have_it(advisory):
    try:
        installed = Version(version(advisory["package"]))
    except PackageNotFoundError:
        pytest.skip(f"there is no {advisory['package']} here")
    assert installed >= Version(advisory["fixed"])


def test_each_says_where_it_is_published():
    for advisory in ADVISORIES:
        assert advisory["ids"] and advisory["source"].startswith("https://") and advisory["what"]
        assert any(each in advisory["source"] for each in advisory["ids"])
