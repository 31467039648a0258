"""What ``import landbridge``, and loading and running a compiled program, must not import."""

from __future__ import annotations

import subprocess
import sys

import onnx
import pytest

import landbridge as lb
from tests.whole_models.small_models import add

COMPILER = ("xdsl", "onnx", "onnx_ir", "llvmlite")
#: Of the standard library and numpy what a program that only runs needs not, and takes long or brings much with it.
LIBRARY = (
    "asyncio", "concurrent.futures", "decimal", "fractions", "importlib.metadata", "importlib.util", "logging",
    "numpy.typing", "pkgutil", "queue", "random", "secrets", "shlex", "subprocess", "tempfile", "traceback", "zipfile",
)  # fmt: skip
#: Of ours what writes files, or is for few programs.
OURS = (
    "compiler.cache", "compiler", "memory.allocators.logging", "memory.allocators.statistics",
    "memory.allocators.tracking", "operators", "files.output_file", "sizes.size", "vm.builtins", "vm.device_lane",
    "vm.trace",
)  # fmt: skip

_IMPORT = "import landbridge"
_RUN = """
import sys, numpy, landbridge as lb
session = lb.Session(lb.load(sys.argv[1]), num_threads=1)
x = numpy.ones(64, numpy.float32)
session.set_input_zero_copy("x", x)
session.run()
with session.get_output(0).host_view("r") as y:
    assert y[63] == 64
"""

#: The facade, and what a session of a program in the cache imports: the model's file is read by onnx alone.
_FACADE = """
import os, sys, numpy
before = set(sys.modules)
import landbridge.onnxruntime as ort
assert ort.__version__ and "SessionOptions" in dir(ort)
at_import = set(sys.modules) - before
if len(sys.argv) > 1:
    ort.InferenceSession(sys.argv[1]).run(None, {"x": numpy.ones(64, numpy.float32)})
print(*at_import)
print(*sys.modules)
"""


@pytest.mark.parametrize(
    ("program", "absent"), [(_IMPORT, (*COMPILER, "argparse", "tvm_ffi")), (_RUN, (*COMPILER, "argparse"))]
)
def test_heavy_packages_stay_out(program, absent, tmp_path):
    lb.compile(add()).save(tmp_path / "add.lbx")
    child = subprocess.run(
        [sys.executable, "-c", program + "\nimport sys; print(*sys.modules)", tmp_path / "add.lbx"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert child.returncode == 0, child.stderr
    assert not set(absent) & {name.partition(".")[0] for name in child.stdout.split()}


def test_a_run_imports_little_beyond_numpy(tmp_path):
    """By name, as times vary: each of these was a millisecond and more of every start."""
    lb.compile(add()).save(tmp_path / "add.lbx")
    program = f"import sys, numpy; before = set(sys.modules)\n{_RUN}\nprint(*set(sys.modules) - before)"
    child = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "add.lbx"], capture_output=True, text=True, timeout=60, check=True
    )
    unwanted = {*LIBRARY, *(f"landbridge.{name}" for name in OURS)}
    assert not unwanted & set(child.stdout.split())


def test_the_facade_is_imported_by_name(tmp_path, monkeypatch):
    """The compiler's packages were 0.3 s of this import; a session needs them only where it compiles."""
    monkeypatch.setenv("LANDBRIDGE_CACHE", str(tmp_path / "cache"))
    onnx.save(add(), tmp_path / "add.onnx")
    lb.compile(tmp_path / "add.onnx")
    child = subprocess.run(
        [sys.executable, "-c", _FACADE, tmp_path / "add.onnx"], capture_output=True, text=True, timeout=60, check=True
    )
    at_import, in_session = (line.split() for line in child.stdout.splitlines())
    ours = [name for name in at_import if name.startswith("landbridge")]
    assert len(ours) <= 12, ours
    assert not {*COMPILER, *LIBRARY} & set(at_import)
    assert not {"xdsl", "onnx_ir"} & set(in_session)  # LLVM is asked what this host is
    assert "landbridge.compiler.compilation" not in in_session
