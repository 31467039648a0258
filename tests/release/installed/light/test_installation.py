"""What an installation is made of, and what its programs and commands do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from importlib import import_module, metadata
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import numpy as np
import pytest

import landbridge as lb

#: Packages of extras and of Python's own optional parts, which a module may import and an installation lack.
EXTRAS = {"llvmlite", "ml_dtypes", "numba", "onnx", "onnx_ir", "onnxscript", "xdsl"}
EXTRAS |= {"argcomplete", "jax", "onnxruntime", "openvino", "pyopencl", "ray", "torch", "tvm_ffi", "wasmtime"}


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "landbridge", *words], capture_output=True, text=True)


def test_it_is_the_installed_one() -> None:
    assert lb.__version__ == metadata.version("landbridge")
    expected = os.environ.get("LANDBRIDGE_RELEASE_VERSION")
    if expected is not None:
        assert lb.__version__ == expected
        assert Path(lb.__file__).is_relative_to(sysconfig.get_path("purelib"))
        files = metadata.files("landbridge") or []
        assert len(files) > 500 and all(Path(str(each.locate())).exists() for each in files)


def test_a_build_without_the_lock_keeps_it_off() -> None:
    """It would come back with the first native module that does not say that it needs none."""
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        assert not sys._is_gil_enabled()  # type: ignore[attr-defined, unused-ignore]


def test_every_module_imports_or_names_what_adds_the_rest() -> None:
    absent, imported = {}, 0
    for info in walk_packages(lb.__path__, "landbridge.", onerror=lambda name: None):
        if info.name.rpartition(".")[2] == "__main__" or ".device_template" in info.name:
            continue
        try:
            import_module(info.name)
            imported += 1
        except ImportError as error:
            named = (error.name or "").partition(".")[0]
            newer = sys.version_info < (3, 11) and named in ("typing", "tomllib")  # the compiler's modules may be
            if not newer and named not in EXTRAS and not any(each in str(error) for each in EXTRAS):
                absent[info.name] = str(error)
    assert not absent
    assert imported > 300


def test_public_names() -> None:
    for name in lb.__all__:
        assert getattr(lb, name) is not None


@pytest.mark.parametrize("name", ["fixed", "open_sizes"])
def test_programs_run_as_where_they_were_compiled(name: str, request: pytest.FixtureRequest) -> None:
    program: Any = request.getfixturevalue(name)
    session = lb.Session(lb.load(program.file))
    assert len(program.inputs) > 4
    for x, y in zip(program.inputs, program.outputs, strict=True):
        assert np.asarray(session(x)[0]).tobytes() == y.tobytes()


def test_nothing_is_copied(fixed: Any) -> None:
    session = lb.Session(lb.load(fixed.file))
    x, y = fixed.inputs[0].copy(), np.zeros_like(fixed.outputs[0])
    session.set_input_zero_copy("x", x)
    session.set_output_zero_copy(0, y)
    with lb.ledger() as moves:
        session.run()
    assert moves.total_bytes == 0 and y.tobytes() == fixed.outputs[0].tobytes()


@pytest.mark.full
def test_commands(fixed: Any) -> None:
    done = command("--version")
    assert done.returncode == 0 and f"landbridge {lb.__version__} (" in done.stdout
    for words in (["devices"], ["targets"], ["doctor"], ["cache"], ["--help"]):
        done = command(*words)
        assert done.returncode == 0 and done.stdout + done.stderr and "Traceback" not in done.stderr, (words, done)
    for name in ("run", "bench", "explain", "trace", "plan", "inspect"):
        done = command(name, str(fixed.file), "--json")
        assert done.returncode == 0 and json.loads(done.stdout), (name, done)
