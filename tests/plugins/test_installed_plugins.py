"""Plugins as users have them: distributions on the path of another process, one of them broken."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "src"


def install(project: Path, folder: Path) -> None:
    """What an installer leaves behind of a project: its modules or packages, and their dist-info."""
    facts = tomllib.loads((project / "pyproject.toml").read_text())
    name, version = facts["project"]["name"], facts["project"]["version"]
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    points = facts["project"]["entry-points"].items()
    (info / "entry_points.txt").write_text(
        "".join(f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in entries.items()) for group, entries in points)
    )
    parts = facts["tool"]["setuptools"]
    for module in parts.get("py-modules", ()):
        shutil.copy(project / f"{module}.py", folder)
    for package in parts.get("packages", ()):
        shutil.copytree(project / package, folder / package)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    install(HERE / "sample_device", folder)
    install(HERE / "broken_device", folder)
    return folder


def run(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(site), str(SOURCES)])
    return subprocess.run(
        [sys.executable, *arguments], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=60
    )


def test_one_broken_plugin_breaks_nothing_else(site: Path) -> None:
    done = run(site, "-m", "landbridge", "devices", "--json", "-v")
    assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout)
    tests = {entry["name"]: entry["self_test"] for entry in listed["devices"]}
    assert tests["sample:0"] is None
    assert tests["cpu:0"] is None
    assert list(listed["broken"]) == ["broken"]
    assert "libbroken.so.1" in listed["broken"]["broken"]
    plugins = {entry["name"]: entry["plugin"] for entry in listed["tried"]}
    assert plugins["sample"] == "landbridge_sample_device:SampleDeviceAPI of landbridge-sample-device"


@pytest.mark.full
def test_the_sample_conforms(site: Path) -> None:
    done = run(site, "-m", "landbridge", "conformance", "sample", "--json")
    report = json.loads(done.stdout)
    assert [r for r in report["results"] if r["outcome"] == "fail"] == []
    assert done.returncode == 0
    assert report["pass"] > 30


def test_asking_for_the_broken_one_says_why(site: Path) -> None:
    done = run(site, "-m", "landbridge", "conformance", "broken")
    assert done.returncode == 1
    assert "libbroken.so.1" in done.stderr


def test_a_plugin_is_imported_only_when_requested(site: Path) -> None:
    program = (
        "import sys, landbridge as lb; lb.device('cpu'); from landbridge.device import registry; "
        "assert 'sample' in registry.names(); assert 'landbridge_sample_device' not in sys.modules; "
        "lb.asarray([1.0, 2.0], device='sample'); assert 'landbridge_sample_device' in sys.modules"
    )
    done = run(site, "-c", program)
    assert done.returncode == 0, done.stderr
