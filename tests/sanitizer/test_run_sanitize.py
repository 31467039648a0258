"""``landbridge run --sanitize``: silent on the main job; what is found is printed and is the exit code."""

from __future__ import annotations

import subprocess
import sys

import pytest
from wheel_models import CLASSIFY, PP_OCR, wheel_model

from landbridge.cli.sanitize import EXIT_FOUND, exit_on_findings
from landbridge.device.registry import device as find_device


@pytest.mark.full  # the kernels of a model, each with tests, take seconds to compile
def test_the_main_job_is_silent():
    model = str(wheel_model(PP_OCR, CLASSIFY))
    command = "from landbridge.cli import main; main()"
    options = ["run", model, "--shape", "x=1x3x48x96", "--device", "cpu", "--repeat", "1", "--sanitize"]
    run = [sys.executable, "-c", command, *options, "--target", "llvm"]
    child = subprocess.run(run, capture_output=True, text=True, timeout=240)
    assert child.returncode == 0, child.stderr
    assert "sanitizer:" not in child.stderr


def test_a_finding_is_the_exit_code(capsys):
    device = find_device("sanitize(sim:lazy)")
    device.api.alloc_data_space(0, 40, 1, "global", None)
    with pytest.raises(SystemExit) as end:
        exit_on_findings()
    assert end.value.code == EXIT_FOUND
    assert "sanitizer: leak: 40 bytes" in capsys.readouterr().err
