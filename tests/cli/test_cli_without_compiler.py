"""Commands where only programs run: the light install has none of the compiler's packages, and says what adds them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import onnx

import landbridge as lb
from tests.whole_models.small_models import projection

#: Runs each list of arguments as a command, where the packages of the compiler cannot be found.
COMMANDS = """
import json, sys
for name in ("xdsl", "onnx", "onnx_ir", "llvmlite"):
    sys.modules[name] = None
from tests.cli.command_line import invoke
for arguments in json.loads(sys.argv[1]):
    done = invoke(arguments)
    print(json.dumps([done.exit_code, repr(done.exception), done.output]))
"""


def test_what_needs_the_compiler_says_the_line_that_adds_it_and_the_rest_works(tmp_path: Path) -> None:
    model, program = str(tmp_path / "model.onnx"), str(tmp_path / "model.lbx")
    onnx.save(projection(2, 4, 4), model)
    lb.compile(model).save(program)
    library = ["--c", str(tmp_path / "c"), "--name", "model"]
    refused = [
        *([name, model] for name in ("run", "inspect", "compare", "bench", "trace", "explain", "plan", "opt")),
        ["compile", model, "-o", str(tmp_path / "new.lbx")],
        ["export", model, *library],
        ["run", model, "-t", "raspberry-pi-5"],
        ["run", model, "--device", "sim:lazy"],
        ["run", model, "--sanitize"],
    ]
    works = [[name, program] for name in ("run", "inspect", "plan", "upgrade")]
    works += [["export", program, *library], ["targets"]]
    child = subprocess.run(
        [sys.executable, "-c", COMMANDS, json.dumps([*refused, *works, ["compare", program]])],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
    )
    assert child.returncode == 0, child.stderr
    found = [json.loads(line) for line in child.stdout.splitlines()]
    for arguments, (code, fault, output) in zip(refused, found, strict=False):
        assert (code, fault) == (1, "None"), (arguments, output)
        assert "pip install 'landbridge[compile]'" in " ".join(output.split()), arguments
    for arguments, (code, _, output) in zip(works, found[len(refused) :], strict=False):
        assert code == 0, (arguments, output)
    assert found[-1][0] == 2 and "needs the .onnx file" in found[-1][2]
    assert not (tmp_path / "new.lbx").exists()
