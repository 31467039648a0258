"""The process that times kernels: its answers, and its errors."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

import landbridge as lb
from landbridge.process.helper_process import environment, python_command
from landbridge.session.kernel_timer import times
from tests.ops.one_node import one_node

SERVE = "from landbridge.session.kernel_timer import serve; serve()"


def program(folder: Path, name: str, op: str, dtype: str = "float32") -> Path:
    array = np.ones((4, 8), dtype)
    file = folder / f"{name}.lbx"
    lb.compile(one_node(op, [array, array])).save(file)
    return file


def answer(request: dict[str, object]) -> object:
    done = subprocess.run(
        python_command(SERVE), input=json.dumps(request) + "\n", text=True, capture_output=True, env=environment()
    )
    return json.loads(done.stdout)


def test_equal_results_have_equal_digests(tmp_path: Path) -> None:
    files = [program(tmp_path, "a", "Add"), program(tmp_path, "b", "Add"), program(tmp_path, "c", "Mul")]
    found = times(files, 1, 0.01)
    assert found[0]["digest"] == found[1]["digest"] != found[2]["digest"]
    assert all(0 < float(str(each["seconds"])) < 1 for each in found)
    assert len({str(each["digest"]) for each in times(files, 0, 0.01)}) == 1, "only results are compared"


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float64", "float16"])
def test_inputs_of_every_dtype_are_made(dtype: str, tmp_path: Path) -> None:
    assert len(times([program(tmp_path, "a", "Add", dtype)], 1, 0.01)) == 1


def test_the_process_answers_in_json(tmp_path: Path) -> None:
    found = answer({"files": [str(program(tmp_path, "a", "Add"))], "results": 1, "seconds": 0.01})
    assert isinstance(found, list) and [each.keys() for each in found] == [{"seconds", "digest"}]


def test_the_process_says_why_it_cannot_run_a_program(tmp_path: Path) -> None:
    (tmp_path / "broken.lbx").write_bytes(b"no program")
    found = answer({"files": [str(tmp_path / "broken.lbx")], "results": 1, "seconds": 0.01})
    assert isinstance(found, dict) and "broken.lbx" in found["error"]
