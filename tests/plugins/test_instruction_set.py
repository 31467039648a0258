"""An instruction set as another package brings it: a program for it compiles, is linked, runs and becomes a library."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from tests.plugins.test_installed_plugins import HERE, SOURCES, install

_TRIAL = '''
import json, sys
from pathlib import Path
import numpy as np
import onnx.parser
import landbridge as lb
from landbridge.compiler.cache.key import NotCacheableError, name_of_entry
from landbridge.errors import LandbridgeError
from landbridge.executable.c_export import export_c
from landbridge.vm import host_cpu

text = """<ir_version: 10, opset_import: ["" : 18]>
g (float[9,16] a, float[16,7] b) => (float[9,7] y) { y = MatMul(a, b) }"""
model = onnx.parser.parse_model(text)
target = lb.Target(sys.argv[2])
program = lb.compile(model, target)
image = program.modules[0].image
said = {"isa": image.isa, "page": image.slots_start % 16384, "pause": b"\\x0f\\xae\\xf0" in image.code}
try:
    lb.Session(program)
except LandbridgeError as error:
    said["refused"] = str(error)
host_cpu.isa = lambda: "x86_64h"
a, b = (np.random.default_rng(n).random(s, np.float32) for n, s in enumerate(((9, 16), (16, 7))))
(y,) = lb.Session(program, num_threads=2)(a, b)
said["error"] = float(np.abs(np.from_dlpack(y) - a @ b).max())
files = export_c(program, sys.argv[1], "net")
said["machines"] = [int.from_bytes(file.read_bytes()[18:20], "little") for file in files if file.suffix == ".so"]
try:
    name_of_entry(text, [target], [], None)
except NotCacheableError as error:
    said["cache"] = str(error)
print(json.dumps(said))
'''


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    install(HERE / "sample_instruction_set", folder)
    return folder


def run(site: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(site), str(SOURCES)])
    environment = {**os.environ, "PYTHONPATH": path, "LANDBRIDGE_CACHE": "0", **variables}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=120)


def test_a_program_for_it_runs(site: Path, tmp_path: Path) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("its code is x86-64's")
    done = run(site, "-c", _TRIAL, str(tmp_path), "llvm -mtriple=x86_64h-linux-gnu -mcpu=generic")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said.pop("error") < 1e-5
    assert "compiled for x86_64h, this machine is x86_64" in said.pop("refused")
    assert said == {
        "isa": "x86_64h",
        "page": 0,
        "pause": True,
        "machines": [62],
        "cache": "instruction set 'x86_64h' is of another package",
    }


def test_without_the_package_it_is_unknown(site: Path) -> None:
    code = 'import landbridge as lb; lb.compile("none.onnx", "llvm -mtriple=x86_64h-linux-gnu -mcpu=generic")'
    done = run(site, "-c", code, LANDBRIDGE_PLUGINS="0")
    assert done.returncode == 1
    assert "no code is made for x86_64h" in done.stderr or "cannot be linked" in done.stderr, done.stderr[-500:]
