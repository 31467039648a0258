"""The Vulkan device on memory that is truly not coherent: a layer of the driver copies what is flushed and invalidated,
and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.devices.present import first_instance
from tests.devices.vulkan.shadow_layer import build
from tests.selection.installed import missing


def _run(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    first_instance("vulkan")
    if shutil.which("gcc") is None or not Path("/usr/include/vulkan/vk_layer.h").exists():
        missing("gcc and the headers of Vulkan layers", "debian")
    return subprocess.run(
        [sys.executable, "-m", "tests.devices.vulkan.driver_work", *words],
        env={**os.environ, **build(tmp_path), "LANDBRIDGE_CACHE": "0"},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


@pytest.mark.full
def test_barriers_are_enough(tmp_path: Path) -> None:
    child = _run(tmp_path)
    assert child.returncode == 0 and "DONE" in child.stdout, child.stdout + child.stderr


@pytest.mark.full
@pytest.mark.parametrize("mistake", ["without flush", "without invalidate", "flush of one atom"])
def test_a_mistake_in_barriers_is_seen(tmp_path: Path, mistake: str) -> None:
    child = _run(tmp_path, mistake)
    assert child.returncode != 0 and "DONE" not in child.stdout, child.stdout + child.stderr
    assert "AssertionError" in child.stderr, child.stderr
