"""What ``import landbridge``, and loading and running a compiled program, must not import."""

from __future__ import annotations

import subprocess
import sys

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
    "compile_cache", "compiler", "host_operators.registry", "memory.allocators.logging",
    "memory.allocators.statistics", "memory.allocators.tracking", "output_file", "sizes.size", "vm.builtins",
    "vm.device_lane", "vm.trace",
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
