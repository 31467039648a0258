"""Loading and running needs numpy alone, from 1.21 on, on Python 3.10 and newer; errors say what adds the rest."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from wheel_models import cache_folder

import landbridge as lb
from tests.selection import pythons
from tests.selection.installed import missing
from tests.whole_models.small_models import edges

#: Seconds for what downloads.
LIMIT = 600
SOURCES = Path(__file__).parents[2] / "src"
#: Of each Python the oldest numpy that it has wheels of, and is asked for.
NUMPY = {"3.10": "1.21.5", "3.11": "1.23.2", "3.12": "1.26.4", "3.13": "2.1.3", "3.14": "2.3.3"}

RUN = """
import sys
for name in ("ml_dtypes", "tvm_ffi", "xdsl", "onnx", "onnx_ir", "llvmlite", "numba"):
    sys.modules[name] = None
import numpy as np, landbridge as lb
session = lb.Session(lb.load(sys.argv[1]), num_threads=2)
x = np.load(sys.argv[2])
np.save(sys.argv[3], np.asarray(session(x)[0]))
assert sys.version_info[:2] == tuple(map(int, sys.argv[4].split(".")))
assert sys.argv[5] in ("", np.__version__)
for name in lb.__all__:
    getattr(lb, name)
from landbridge.dtypes import numpy_dtype
module = lb.Module(lb.load(sys.argv[1]))
for wrong in (lambda: lb.compile(b""), lambda: numpy_dtype("bfloat16"), lambda: module[next(iter(module))]):
    try:
        wrong()
    except lb.LandbridgeError as error:
        print(type(error).__name__, error)
"""


def check(python: str | Path, version: str, numpy: str, folder: Path, path: str = "") -> None:
    import numpy as np

    executable = lb.compile(edges(24, 32), "llvm -mcpu=x86-64-v2")
    executable.save(folder / "edges.lbx")
    x = np.random.default_rng(0).normal(size=(1, 3, 24, 32)).astype(np.float32)
    np.save(folder / "x.npy", x)
    files = [str(folder / name) for name in ("edges.lbx", "x.npy", "y.npy")]
    environment = {**os.environ, "PYTHONPATH": f"{SOURCES}:{path}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [str(python), "-c", RUN, *files, version, numpy]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert np.load(folder / "y.npy").tobytes() == np.asarray(lb.Session(executable)(x)[0]).tobytes()
    compiling, narrow, functions = done.stdout.splitlines()
    assert compiling.startswith("CompileError") and "pip install 'landbridge[compile]'" in compiling
    assert narrow.startswith("InputError") and "pip install ml-dtypes" in narrow
    assert functions.startswith("UnsupportedError") and "pip install 'landbridge[tvm-ffi]'" in functions


def test_without_any_package_but_numpy(tmp_path: Path) -> None:
    check(sys.executable, f"{sys.version_info[0]}.{sys.version_info[1]}", "", tmp_path)


def test_what_runs_programs_gives_no_parameters_to_ndarray() -> None:
    """numpy 1.21 takes none when a module is imported: aliases are ``landbridge.array_type``'s."""
    compile_side = {"compiler", "frontend", "passes", "codegen", "emit", "ops", "ir", "analysis", "interpreter"}
    found = []
    for path in (SOURCES / "landbridge").rglob("*.py"):
        name = path.relative_to(SOURCES / "landbridge")
        if name.parts[0] not in compile_side and name.name != "array_type.py":
            for statement in ast.parse(path.read_text()).body:
                value = getattr(statement, "value", None)
                nodes = ast.walk(value) if isinstance(value, ast.AST) else ()
                found += [str(name) for node in nodes if _is_ndarray_of(node)]
    assert not found


def _is_ndarray_of(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "ndarray"


def test_commands_say_that_they_lack_numpy() -> None:
    """Where pip was told to install no dependencies: in words, as an object with --json, and with no traceback."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    command = [sys.executable, "-S", "-m", "landbridge", "run", "model.lbx", "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    described = json.loads(done.stdout)["error"]
    assert described["kind"] == "ModuleNotFoundError"
    assert described["message"] == "landbridge needs numpy, which this install lacks; add it with: pip install numpy"
    assert described["message"] in done.stderr


@pytest.mark.full
@pytest.mark.parametrize("version", NUMPY)
def test_on_every_python_with_its_oldest_numpy(version: str, tmp_path: Path) -> None:
    python = str(pythons.find(version) or missing(f"a Python {version} that works", "pythons"))
    packages = cache_folder() / "light" / f"numpy-{NUMPY[version]}-{version}"
    if not packages.exists():
        part = tmp_path / "packages"
        pip = [sys.executable, "-P", "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:"]
        # pip asks numpy 1.21 whether it is for the Python that pip runs with.
        wanted = ["--ignore-requires-python", f"numpy=={NUMPY[version]}"]
        pip += ["--python-version", version, "--target", str(part)]
        subprocess.run([*pip, *wanted], check=True)
        packages.parent.mkdir(parents=True, exist_ok=True)
        part.rename(packages)
    check(python, version, NUMPY[version], tmp_path, str(packages))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-P", "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder), str(SOURCES.parent)]
    subprocess.run(pip, check=True, timeout=LIMIT)
    (found,) = folder.glob("*.whl")
    return found


@pytest.mark.full
@pytest.mark.parametrize("version", NUMPY)
def test_the_documented_line_makes_what_is_small_and_runs(version: str, wheel: Path, tmp_path: Path) -> None:
    python = str(pythons.find(version) or missing(f"a Python {version} that works", "pythons"))
    page = (SOURCES.parent / "docs/deploy-to-a-board.md").read_text()
    (line,) = [each for each in page.splitlines() if each.startswith("python3 -m venv --clear ~/.landbridge")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment["HOME"] = str(tmp_path)
    line = line.replace("python3", python, 1).replace(" landbridge ", f" {wheel} ")
    subprocess.run(["sh", "-c", line], check=True, env=environment, timeout=LIMIT)
    lb.compile(edges(24, 32), "llvm -mcpu=x86-64-v2").save(tmp_path / "edges.lbx")
    made = tmp_path / ".landbridge"
    (packages,) = made.glob("lib/python*/site-packages")
    assert {entry.name.partition("-")[0] for entry in packages.glob("*.dist-info")} == {"landbridge", "numpy"}
    for program_there in ([str(made / "bin/landbridge")], [str(made / "bin/python"), "-m", "landbridge"]):
        for line in (["--version"], ["--help"], ["run", "--help"], ["devices"], ["targets"], ["cache"]):
            done = subprocess.run([*program_there, *line], env=environment, capture_output=True, text=True)
            assert done.returncode == 0 and done.stdout + done.stderr, (line, done.stdout, done.stderr)
    for command in ("run", "bench", "explain", "trace", "plan", "inspect"):
        for line in ([], ["--json"]):
            requested = [str(made / "bin/landbridge"), command, str(tmp_path / "edges.lbx"), *line]
            done = subprocess.run(requested, env=environment, capture_output=True, text=True, timeout=LIMIT)
            assert done.returncode == 0, (requested, done.stdout, done.stderr)
    blocks = sum(file.lstat().st_blocks for file in made.rglob("*"))
    assert blocks * 512 < 110 * 1000**2
