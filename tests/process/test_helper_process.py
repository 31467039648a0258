"""Helper processes and compilers take nothing from the folder where the user's files are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

import landbridge
from landbridge.codegen.llvm.compile import compile_ir
from landbridge.codegen.llvm.compile_jobs import Job, compile_all
from landbridge.codegen.llvm.machine import Machine
from landbridge.errors import TargetError
from landbridge.process import helper_process, start_helper
from landbridge.targets import Target, c_compiler, llvm_cpu
from tests.whole_models.small_models import add

SOURCE = str(Path(landbridge.__file__).parents[1])
HOSTILE = "open({!r}, 'a').write(__name__ + ' ')\nraise SystemExit('hostile code ran')\n"
#: The standard library's, others' and our own names.
NAMES = (
    "queue", "json", "pickle", "signal", "threading", "subprocess", "ctypes", "random", "sitecustomize", "numpy",
    "llvmlite", "xdsl", "onnx", "landbridge/__init__", "landbridge/codegen/__init__", "llvmlite/__init__",
    "argcomplete",
)  # fmt: skip


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder with a model, and beside it files that are called as modules and programs are."""
    folder = tmp_path / "hostile"
    ran = HOSTILE.format(str(tmp_path / "ran"))
    for name in NAMES:
        file = folder / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(ran)
    for name in ("cc", "gcc", "clang", "as", "ld", "cc1"):
        (folder / name).write_text(f"#!/bin/sh\necho {name} >> {tmp_path / 'ran'}\nexit 1\n")
        (folder / name).chmod(0o755)
    for name in ("stdint.h", "math.h", "immintrin.h"):
        (folder / name).write_text("#error hostile header\n")
    onnx.save(add(), folder / "m.onnx")
    return folder


def run(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, cwd=folder, env=os.environ | environment, capture_output=True, text=True)
    ran = folder.parent / "ran"
    assert not ran.exists(), f"{ran.read_text()} of the user's folder were executed by {command}: {done.stderr}"
    return done


#: As a console script does it: its own folder is first on the path, the current one nowhere.
CONSOLE = "import sys; sys.path.remove(''); from landbridge.cli import main; sys.argv[0] = 'landbridge'; main()"
WITH_HELPERS = """
import sys
sys.path = [entry for entry in sys.path if entry]
from landbridge.codegen.llvm.compile import compile_ir
from landbridge.codegen.llvm.machine import Machine
from landbridge.codegen.llvm.compile_jobs import Job, compile_all
machine = Machine("x86_64-unknown-linux-gnu", "x86-64-v3", "")
jobs = [Job(f"define i64 @f{i}(i64 %x) {{ ret i64 %x }}" + "\\n;" * 200_000, True) for i in range(4)]
sys.path.insert(0, sys.argv[1]) if len(sys.argv) > 1 else None
assert compile_all(jobs, machine, 3) == [compile_ir(job.text, machine) for job in jobs]
"""


@pytest.mark.parametrize("target", ["llvm -mcpu=skylake", "c"])
def test_the_command_line_beside_hostile_files(hostile: Path, target: str) -> None:
    if target == "c" and c_compiler.find() is None:
        pytest.skip("no C compiler")
    path = f":.:{os.environ['PATH']}"
    command = (sys.executable, "-c", CONSOLE, "compile", "m.onnx", "--target", target)
    done = run(hostile, *command, PATH=path, CPATH=":", COMPILER_PATH=":", PYTHONPATH=SOURCE)
    assert done.returncode == 0, done.stderr
    assert (hostile / "m.lbx").exists()


def test_the_command_line_as_a_module(hostile: Path) -> None:
    for package in ("landbridge", "llvmlite"):  # of its own name is what Python itself takes before we run
        (hostile / package / "__init__.py").unlink()
    (hostile / "landbridge").rename(hostile / "other")
    done = run(hostile, sys.executable, "-m", "landbridge", "compile", "m.onnx", PYTHONPATH=SOURCE)
    assert done.returncode == 0, done.stderr


def test_helpers_beside_hostile_files(hostile: Path) -> None:
    """Also where this process itself has the folder on its path, for what it takes from it."""
    for extra in ([], ["."], [str(hostile)]):
        done = run(hostile, sys.executable, "-c", WITH_HELPERS, *extra, PYTHONPATH=SOURCE)
        assert done.returncode == 0, done.stderr


def test_a_package_beside_the_script_is_found_by_helpers(tmp_path: Path) -> None:
    """As where all was installed into the application's folder: the last place to look, and still one."""
    (tmp_path / "landbridge").symlink_to(Path(landbridge.__file__).parent)
    (tmp_path / "script.py").write_text(WITH_HELPERS)
    done = run(tmp_path, sys.executable, str(tmp_path / "script.py"))
    assert done.returncode == 0, done.stderr


def test_a_helper_has_this_very_package_and_this_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, "", str(tmp_path / "own")])
    monkeypatch.setenv("PYTHONPATH", f":{tmp_path}")
    monkeypatch.chdir(tmp_path)
    code = "import json, sys, landbridge; print(json.dumps([sys.path, landbridge.__file__, sys.argv[1:]]))"
    command = helper_process.python_command(code, ["an", "argument"])
    done = subprocess.run(command, env=helper_process.environment(), capture_output=True, text=True, check=True)
    path, package_file, arguments = json.loads(done.stdout)
    assert package_file == landbridge.__file__ and arguments == ["an", "argument"]
    assert str(tmp_path / "own") in path and "" not in path and str(tmp_path) not in path
    assert set(filter(None, sys.path)) <= set(path)


def test_programs_are_found_by_absolute_folders_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in (tmp_path, tmp_path / "bin"):
        folder.mkdir(exist_ok=True)
        (folder / "tool").write_text("#!/bin/sh\n")
        (folder / "tool").chmod(0o755)
    for path in ("", ":", ".", "bin", ":bin:."):
        monkeypatch.setenv("PATH", path)
        assert helper_process.find_program("tool") is None
        assert "PATH" not in helper_process.environment()
    monkeypatch.setenv("PATH", f":bin:{tmp_path / 'bin'}:.")
    assert helper_process.find_program("tool") == str(tmp_path / "bin" / "tool")
    assert helper_process.environment()["PATH"] == str(tmp_path / "bin")
    assert helper_process.find_program("./tool") == str(tmp_path / "tool")


def test_what_this_process_ignores_its_helpers_ignore(tmp_path: Path) -> None:
    """A helper of an isolated Python starts where PYTHONHOME would keep another from starting."""
    code = "import subprocess, sys; sys.path.append(sys.argv[1]); from landbridge.process import helper_process as h;"
    code += "print(subprocess.run(h.python_command('import json; print(1)'), env=h.environment()).returncode)"
    done = run(tmp_path, sys.executable, "-I", "-c", code, SOURCE, PYTHONHOME=str(tmp_path / "nowhere"))
    assert done.stdout.split() == ["1", "0"], done.stderr


@pytest.mark.parametrize("program", ["", "/usr/bin/blender", "/opt/app"])
def test_without_an_interpreter_there_are_no_helpers(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", program)
    monkeypatch.setattr(start_helper.subprocess, "Popen", lambda *_, **__: pytest.fail("it started one"))
    machine = Machine("x86_64-unknown-linux-gnu", "x86-64-v3", "")
    jobs = [Job(f"define void @f{i}() {{ ret void }}", True) for i in range(2)]
    assert compile_all(jobs, machine, 2) == [compile_ir(job.text, machine) for job in jobs]
    monkeypatch.setattr(llvm_cpu, "_probed", llvm_cpu._probed.__wrapped__)
    with pytest.raises(TargetError, match=r"a Python of its own"):
        Target("llvm -mcpu=skylake-avx512")
