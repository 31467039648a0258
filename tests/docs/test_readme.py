"""Each command of README does as it is pasted into a shell, one block after the other, with nothing else on PATH.

The line that runs the tests is run by `.ci/run`; the Python by `tests/docs/test_docs.py`.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from tests.docs.test_docs import ROOT, blocks

SHELL = [text for kind, text in blocks(ROOT / "README.md") if kind == "sh"]
TRY, TEST, FETCH, COMMANDS = SHELL


def paste(text: str, folder: Path) -> str:
    """What ``text`` prints in a shell whose folder is ``folder``; fails where one of its lines does."""
    retained = {
        name: value for name, value in os.environ.items() if name[:4] == "PIP_" or name.lower()[-6:] == "_proxy"
    }
    path = "/usr/bin:/bin"
    new_enough = ["python3", "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
    if subprocess.run(new_enough, env={"PATH": path}).returncode:
        path = f"{Path(sys.base_prefix, 'bin')}:{path}"
    done = subprocess.run(
        ["/bin/sh", "-e"],
        input=text,
        cwd=folder,
        env=retained | {"HOME": os.environ["HOME"], "PATH": path, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr and "error" not in done.stderr.lower(), done.stderr
    return done.stdout


def environment(folder: Path) -> None:
    """``.venv`` as the first block makes it, with the packages that are installed here."""
    venv.create(folder / ".venv", symlinks=True)
    (packages,) = (folder / ".venv").glob("lib/python*/site-packages")
    installed = [path for path in sys.path if path.endswith("-packages")]
    (packages / "installed.pth").write_text("".join(f"import site; site.addsitedir({path!r})\n" for path in installed))
    for name, module in {"landbridge": "landbridge", "pip": "pip"}.items():
        program = folder / ".venv" / "bin" / name
        program.write_text(f'#!/bin/sh\nexec "{folder}/.venv/bin/python" -m {module} "$@"\n')
        program.chmod(0o755)


def small_detector() -> onnx.ModelProto:
    """Takes a picture, gives a probability for each pixel, as the real one does."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, "h", "w"))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 1, "h", "w"))
    sizes = {"a": (8, 3, 3, 3), "b": (1, 8, 3, 3)}
    weights = [helper.make_tensor(k, TensorProto.FLOAT, s, [0.01] * math.prod(s)) for k, s in sizes.items()]
    nodes = [
        helper.make_node("Conv", ["x", "a"], ["c"], name="first", pads=[1] * 4),
        helper.make_node("Conv", ["c", "b"], ["d"], name="second", pads=[1] * 4),
        helper.make_node("Sigmoid", ["d"], ["y"], name="probability"),
    ]
    graph = helper.make_graph(nodes, "detector", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def check_commands(folder: Path) -> None:
    output = paste(COMMANDS, folder)
    for word in ("copies in one run: none", "onnxruntime", "proved optimal", "cpu:0: PASS"):
        assert word in output
    for name in ("det.lbx", "det.trace.json", "plan.html", "roofline.html"):
        assert (folder / name).stat().st_size > 0


def test_the_commands(tmp_path: Path) -> None:
    environment(tmp_path)
    onnx.save(small_detector(), tmp_path / "det.onnx")
    check_commands(tmp_path)


def test_the_model_comes_out_of_its_wheel(tmp_path: Path) -> None:
    environment(tmp_path)
    paste(FETCH, tmp_path)
    onnx.checker.check_model(tmp_path / "det.onnx")


def test_the_line_that_runs_the_tests_is_what_ci_runs() -> None:
    (line,) = TEST.splitlines()
    pattern = r"grep -m 1 '^\.ci/install-debian-packages && .*pytest$' README.md"
    assert pattern in (ROOT / ".ci" / "run").read_text()
    found = subprocess.run(["sh", "-c", pattern], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert found.strip() == line


@pytest.mark.full
def test_everything_in_a_fresh_folder(tmp_path: Path) -> None:
    folder = tmp_path / "landbridge"
    unwanted = shutil.ignore_patterns(".venv", ".git", "__pycache__", ".*_cache", "build", "dist", "*.lbx", "*.onnx")
    shutil.copytree(ROOT, folder, ignore=unwanted)
    assert "12 boxes, 1 upside down" in paste(TRY, folder)
    paste(FETCH, folder)
    check_commands(folder)
