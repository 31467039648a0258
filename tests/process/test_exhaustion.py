"""Where the system gives no more memory, files or processes, work ends in a result or in an error that says so.

Each step is a process of its own, forked from one that has compiled and run something before, with a limit that is a
little higher than that of the step before. A step that takes too long is one that hangs.
"""

from __future__ import annotations

import errno
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

from landbridge import plugins
from landbridge.errors import NodeError, OutOfMemoryError, ResourceLimitError
from landbridge.process import exhaustion
from landbridge.process.exhaustion import raise_exhaustion, reports_exhaustion

#: Prints a line a step: ``ok``, the error, or what is wrong with it.
_SWEEP = """
import os, resource, select, signal, sys
import numpy as np
from onnx import TensorProto, helper
import landbridge as lb

work, kind, *steps = sys.argv[1:]
limits = {"memory": resource.RLIMIT_AS, "files": resource.RLIMIT_NOFILE}
shape = (256, 256)
a, b, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "aby")


def model(*nodes):
    graph = helper.make_graph([helper.make_node(*node) for node in nodes], "g", [a, b], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


x = np.ones(shape, np.float32)
lb.Session(lb.compile(model(("Add", ["a", "b"], ["y"]))), num_threads=1)(x, x)
tried = model(("MatMul", ["a", "b"], ["m"]), ("Transpose", ["m"], ["t"]), ("Softmax", ["t"], ["y"]))
if work != "compile":
    if os.fork() == 0:
        lb.compile(tried).save("tried.lbx")
        os._exit(0)
    assert os.wait()[1] == 0


def attempt():
    program = lb.compile(tried) if work == "compile" else lb.load("tried.lbx")
    (result,) = lb.Session(program, num_threads=2)(x, x)
    return np.asarray(result)


def step(number):
    which = limits[kind]
    if kind == "memory":
        with open("/proc/self/statm") as file:
            number = int(file.read().split()[0]) * resource.getpagesize() + (number << 10)
    _, most = resource.getrlimit(which)
    resource.setrlimit(which, (number, most))
    try:
        attempt()
    except lb.LandbridgeError as error:
        said = f"{type(error).__name__}: {' '.join(str(error).split())}"
    except BaseException as error:
        return f"raw {type(error).__name__}: {error}"
    else:
        return "ok"
    resource.setrlimit(which, (most, most))
    try:
        attempt()  # nothing is left half done
    except BaseException as error:
        return f"for good {type(error).__name__}: {error}, after {said}"
    return said


for number in map(int, steps):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, step(number).encode()[:2000])
        os._exit(0)
    os.close(writer)
    found, _, _ = select.select([reader], [], [], 60)
    said = os.read(reader, 4000).decode() if found else "hangs"
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reader)
    print(number, said or "crashes", flush=True)
"""


def swept(work: str, kind: str, steps: range, folder: Path) -> dict[int, str]:
    """What each step of ``work`` with a limit of ``kind`` ended in: of memory in KiB above what the process has."""
    child = subprocess.run(
        [sys.executable, "-c", _SWEEP, work, kind, *map(str, steps)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "LANDBRIDGE_CACHE": "0", "OPENBLAS_NUM_THREADS": "1"},
        timeout=60 * (len(steps) + 2),
    )
    assert child.returncode == 0, child.stderr
    lines = (line.partition(" ") for line in child.stdout.splitlines())
    return {int(number): output for number, _, output in lines}


@pytest.mark.parametrize("work", ["load", "compile"])
def test_a_little_memory_gives_a_result_or_says_that_it_is_not_enough(work: str, tmp_path: Path) -> None:
    """From nothing to 24 MiB more than the process has; 1 MiB is less than the stack of a thread, which hung before."""
    found = swept(work, "memory", range(0, 24 << 10, 1 << 10 if work == "load" else 3 << 10), tmp_path)
    assert len(found) == len(range(0, 24 << 10, 1 << 10 if work == "load" else 3 << 10))
    wrong = {number: output for number, output in found.items() if not output.startswith(("ok", "OutOfMemoryError"))}
    assert not wrong
    assert found[0].startswith("OutOfMemoryError")


@pytest.mark.full
@pytest.mark.parametrize("work", ["load", "compile"])
def test_in_small_steps_around_the_stack_of_a_thread(work: str, tmp_path: Path) -> None:
    """Where a thread gets its stack, and little more."""
    found = swept(work, "memory", range(7 << 10, 15 << 10, 96), tmp_path)
    wrong = {number: output for number, output in found.items() if not output.startswith(("ok", "OutOfMemoryError"))}
    assert not wrong


@pytest.mark.sample(1)
@pytest.mark.parametrize("work", ["load", "compile"])
def test_few_files(work: str, tmp_path: Path) -> None:
    found = swept(work, "files", range(3, 10), tmp_path)
    assert len(found) == 7
    wrong = {n: output for n, output in found.items() if output.startswith(("raw", "for good", "hangs", "crashes"))}
    assert not wrong
    assert found[3] != "ok"


def test_what_comes_of_no_memory_says_so() -> None:
    """A module that could not be mapped, in what was made of it: the package is not missing."""

    @reports_exhaustion("a test ran")
    def fails() -> None:
        try:
            raise ImportError("libx.so: failed to map segment from shared object")
        except ImportError as error:
            raise NodeError("Transpose has no handler") from error

    with pytest.raises(OutOfMemoryError, match=r"memory ended while a test ran .*failed to map"):
        fails()


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("can't start new thread"),
        SystemError("error return without exception set"),
        OSError("libx.so: cannot create shared object descriptor: Cannot allocate memory"),
    ],
    ids=repr,
)
def test_forms_in_which_memory_ends(error: BaseException) -> None:
    with pytest.raises(OutOfMemoryError):
        raise_exhaustion(error, "a test ran")


@pytest.mark.parametrize("error", [ValueError("memory"), OSError(errno.ENOENT, "no file"), ImportError("no module")])
def test_other_errors_are_left_alone(error: BaseException) -> None:
    raise_exhaustion(error, "a test ran")


def test_no_more_files_keep_the_systems_number() -> None:
    with pytest.raises(ResourceLimitError, match="ulimit -n") as found:
        raise_exhaustion(OSError(errno.EMFILE, "Too many open files"), "a test ran")
    assert found.value.errno == errno.EMFILE


def test_a_folder_of_modules_that_cannot_be_read_is_not_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """``iter_modules`` takes a folder for empty that the system has no memory to list."""

    def refuse(_: Path) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(pkgutil, "iter_modules", lambda _: iter(()))
    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(OSError, match="Cannot allocate"):
        plugins.import_modules("landbridge.ops")
    assert exhaustion.memory_cause(OSError(errno.ENOMEM, "")) is not None
