"""compile(optimize="fast"): a first program at once, the full one by a process that leaves nothing behind."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

import landbridge as lb
from landbridge.compiler import background_compile
from landbridge.compiler.background_compile import BackgroundCompile
from landbridge.errors import FallbackWarning, InputError
from tests.compiler.product_model import save_product

X = np.arange(12, dtype=np.float32).reshape(3, 4)
#: Seconds after which something that has to happen will not: far more than it takes on a busy machine.
PATIENCE = 300


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("LANDBRIDGE_CACHE", str(folder))
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return save_product(tmp_path)


def compiled_by(executable: lb.Executable) -> BackgroundCompile:
    replacement = executable.replacement
    assert isinstance(replacement, BackgroundCompile)
    return replacement


def process_of(executable: lb.Executable) -> subprocess.Popen[bytes]:
    process = compiled_by(executable)._process
    assert process is not None
    return process


def is_alive(number: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{number}/status").read_text()
    except OSError:
        return False


def wait_until(happened: object) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.01)


EXPECTED = np.maximum(X @ (np.eye(4, dtype=np.float32) - 0.5), 0)


@pytest.mark.parametrize("as_bytes", [False, True])
def test_the_full_program_replaces_the_first(file: Path, cache: Path, as_bytes: bool) -> None:
    model = file.read_bytes() if as_bytes else file
    first = lb.compile(model, optimize="fast")
    session = lb.Session(first)
    assert not first.modules and np.allclose(session(X)[0], EXPECTED)
    full = compiled_by(first).wait()
    assert full is not None and full.modules
    assert np.allclose(session(X)[0], EXPECTED) and session.executable is full
    again = lb.compile(model, optimize="fast")
    assert again.replacement is None and again.modules  # from the cache
    assert [each.suffix for each in cache.iterdir() if each.suffix != ".processor"] == [".lbx"]


def test_it_is_the_program_that_a_full_compile_makes(file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = compiled_by(lb.compile(file, optimize="fast")).wait()
    assert full is not None
    monkeypatch.setenv("LANDBRIDGE_CACHE", "0")
    assert np.asarray(lb.Session(full)(X)[0]).tobytes() == np.asarray(lb.Session(lb.compile(file))(X)[0]).tobytes()


@pytest.mark.parametrize(
    "options",
    [
        {"target": "c"}, {"target": "llvm -num-cores=1"}, {"extra_outputs": ["p"]}, {"mutable": ["w"]},
        {"check_indices": True}, {"max_nodes": 7}, {"limits": lb.Limits(nodes=7)}, {"optimize": "full"},
        {"shapes": {"x": ("N", 4)}},
    ],
)  # fmt: skip
def test_other_options_compile_the_full_program(file: Path, cache: Path, options: dict[str, object]) -> None:
    if "shapes" in options:
        model = onnx.load(file)
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
        model.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "N"
        onnx.save(model, file)
    found = lb.compile(file, **{"optimize": "fast", **options})  # type: ignore[arg-type]
    assert found.replacement is None and found.modules


def test_without_a_cache_the_full_program_is_compiled(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDBRIDGE_CACHE", "0")
    assert lb.compile(file, optimize="fast").replacement is None


def test_a_cache_that_takes_no_files_compiles_the_full_program(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LANDBRIDGE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "cache").write_text("a file where a folder would be")
    assert lb.compile(file, optimize="fast").replacement is None


def test_where_no_process_starts_the_full_program_is_compiled(
    file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_compile, "has_interpreter", lambda: False)
    assert lb.compile(file, optimize="fast").replacement is None


def test_illegal_words() -> None:
    with pytest.raises(InputError, match="legal: 'full', 'fast'"):
        lb.compile("none.onnx", optimize="quick")  # type: ignore[arg-type]


def test_a_process_that_is_killed_is_reported_once(file: Path, cache: Path) -> None:
    with locked(cache):
        first = lb.compile(file, optimize="fast")
        session, process = lb.Session(first), process_of(first)
        session(X)
        process.kill()
        process.wait()
    with pytest.warns(FallbackWarning, match=r"product.onnx.*ended with status -9; the first program stays in use"):
        session(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.allclose(session(X)[0], EXPECTED) and np.allclose(lb.Session(first)(X)[0], EXPECTED)
    assert session.executable is first and not list(cache.glob("*.lbx"))


def test_an_interrupt_while_python_looks_after_the_process_leaves_no_lock(file: Path, cache: Path) -> None:
    with locked(cache):
        first = lb.compile(file, optimize="fast")
        process = process_of(first)
        process._waitpid_lock.acquire()  # type: ignore[attr-defined]  # as an interrupt within Popen.poll leaves it
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    try:
        with pytest.warns(FallbackWarning, match="ended with status -9"):
            assert compiled_by(first).take() is None
    finally:
        process._waitpid_lock.release()  # type: ignore[attr-defined]


def test_an_error_of_the_compile_is_reported(file: Path, cache: Path) -> None:
    with locked(cache):
        first = lb.compile(file, optimize="fast")
        file.write_bytes(b"no model any more")
    with pytest.warns(FallbackWarning, match="ImportModelError"):
        assert compiled_by(first).wait() is None
    assert np.allclose(lb.Session(first)(X)[0], EXPECTED)


def test_a_result_that_cannot_be_kept_is_reported(file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDBRIDGE_CACHE_BYTES", "1")  # as on a disk that is full: no entry stays
    first = lb.compile(file, optimize="fast")
    with pytest.warns(FallbackWarning, match="not in the cache"):
        assert compiled_by(first).wait() is None
    assert not list(cache.glob("*.lbx"))


@contextlib.contextmanager
def locked(cache: Path) -> Iterator[None]:
    """Holds what background compiles of the folder wait for."""
    cache.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(cache, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(descriptor)


def test_two_that_want_one_model_compile_it_once(file: Path, cache: Path) -> None:
    with locked(cache):
        both = [lb.compile(file, optimize="fast") for _ in range(2)]
    found = [compiled_by(each).wait() for each in both]
    assert all(each is not None for each in found)
    (entry,) = cache.glob("*.lbx")
    written = entry.stat().st_ino, entry.stat().st_mtime_ns
    with locked(cache):
        pass  # both are over
    assert (entry.stat().st_ino, entry.stat().st_mtime_ns) == written


_ENDS = """
import os, signal, sys
import landbridge as lb
first = lb.compile(sys.argv[1], optimize="fast")
print(first.replacement._process.pid, flush=True)
how = sys.argv[2]
if how == "error":
    raise SystemExit(3)
if how == "fork":  # a child that lives on keeps no process of its parent
    if os.fork() == 0:
        sys.stdin.read()
        os._exit(0)
if how in ("killed", "fork"):
    os.kill(os.getpid(), signal.SIGKILL)
if how == "interrupted":
    os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.parametrize("how", ["normally", "error", "killed", "interrupted", "fork"])
def test_the_process_ends_with_this_one(file: Path, cache: Path, how: str) -> None:
    with locked(cache):
        ended = subprocess.Popen(
            [sys.executable, "-c", _ENDS, str(file), how],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert ended.stdout is not None
        number = int(ended.stdout.readline())
        ended.wait()
        wait_until(lambda: not is_alive(number))
    assert not [each for each in cache.iterdir() if each.suffix != ".processor"]
    ended.communicate()


def test_a_child_after_a_fork_takes_the_program_too(file: Path, cache: Path) -> None:
    first = lb.compile(file, optimize="fast")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        status = 1
        try:
            session = lb.Session(first)
            before = np.allclose(session(X)[0], EXPECTED)
            os.read(read, 1)  # until the parent has seen the program, or ended
            after = np.allclose(session(X)[0], EXPECTED)
            status = 0 if before and after and session.executable.modules else 2
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(read)
    full = compiled_by(first).wait()
    os.close(write)
    _, status = os.waitpid(child, 0)
    assert status == 0 and full is not None


def test_the_process_gives_way(file: Path, cache: Path) -> None:
    with locked(cache):
        process = process_of(lb.compile(file, optimize="fast"))
        niceness = os.getpriority(os.PRIO_PROCESS, 0)
        wait_until(lambda: os.getpriority(os.PRIO_PROCESS, process.pid) > niceness)
        assert os.getpgid(process.pid) == process.pid  # Ctrl-C does not reach it
        os.kill(process.pid, signal.SIGKILL)


def test_the_process_ends_with_the_last_program_and_session(file: Path, cache: Path) -> None:
    executable = lb.compile(file, optimize="fast")
    number = process_of(executable).pid
    session = lb.Session(executable, num_threads=1)
    del executable
    assert is_alive(number)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del session
        gc.collect()
    assert not is_alive(number)
    assert not [each for each in caught if issubclass(each.category, ResourceWarning)]


def test_dimensions_that_are_numbers_have_a_first_program(cache: Path) -> None:
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[N, 4] x) => (float[N, 4] y) { y = Relu(x) }'
    model = onnx.parser.parse_model(text).SerializeToString()
    first = lb.compile(model, dims={"N": 3}, optimize="fast")
    full = compiled_by(first).wait()
    assert full is not None and full.main.inputs[0].shape == first.main.inputs[0].shape == (3, 4)
    assert lb.compile(model, dims={"N": 3}).replacement is None, "the process compiled with the same options"
    assert lb.compile(model, dims={"N": "1..4"}, optimize="fast").is_open
    with pytest.raises(InputError, match="no open dimension 'K'"):
        lb.compile(model, dims={"N": 3, "K": 2}, optimize="fast")
