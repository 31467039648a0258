"""Files that constants are mapped from, cut or written to: seen when a Session is made, never a crash there."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import random
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.errors import ExecutableError, InputError
from landbridge.executable import file_reader, file_watch
from landbridge.executable.executable import Executable
from landbridge.executable.file_watch import quick_checksum
from landbridge.executable.header import unpack_header
from landbridge.frontend.onnx import external_data

COUNT = 40_000
WEIGHTS = np.random.default_rng(0).random(COUNT, np.float32)
X = np.ones(COUNT, np.float32)


def proto() -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (COUNT,)) for name in "xy")
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    graph = helper.make_graph(nodes, "add", [x], [y], [numpy_helper.from_array(WEIGHTS, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("lbx") / "m.lbx"
    lb.compile(proto(), "llvm -mcpu=generic").save(path)
    return path.read_bytes()


@pytest.fixture
def file(tmp_path: Path, saved: bytes) -> Path:
    path = tmp_path / "m.lbx"
    path.write_bytes(saved)
    os.utime(path, ns=(1, 1))  # so that any write is later
    return path


def constants_at(content: bytes) -> int:
    return unpack_header(content, len(content)).sections[-1].offset


def cut(path: Path) -> None:
    os.truncate(path, constants_at(path.read_bytes()) + 4096)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[constants_at(content) + random.Random(0).randrange(4 * COUNT)] ^= 1
    with path.open("r+b") as into:
        into.write(content)


def replace(path: Path) -> None:
    """By another of the same size, in place, as ``cp`` does it."""
    content = bytearray(path.read_bytes())
    content[constants_at(content) :] = bytes(len(content) - constants_at(content))
    with path.open("r+b") as into:
        into.write(content)


def right(executable: Executable) -> None:
    (got,) = lb.Session(executable, num_threads=1)(X)
    np.testing.assert_array_equal(np.asarray(got), WEIGHTS + 1)


@pytest.fixture(params=["read at once", "read by a thread", "without threads"])
def how_it_is_read(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param != "read at once":
        monkeypatch.setattr(file_watch, "_READ_AT_ONCE", 0)
    if request.param == "without threads":
        monkeypatch.setattr(threading.Thread, "start", Mock(side_effect=RuntimeError("can't start new thread")))


@pytest.mark.usefixtures("how_it_is_read")
@pytest.mark.parametrize("bound_before", [False, True])
@pytest.mark.parametrize("damage", [cut, empty, flip, replace])
def test_making_a_session_sees_what_happened_to_the_file(
    file: Path, damage: Callable[[Path], None], bound_before: bool
) -> None:
    executable = lb.load(file)
    if bound_before:
        right(executable)
    damage(file)
    for use in (lb.Session, lambda e: e.save(file.parent / "again.lbx"), lambda e: e.check_files()):
        with pytest.raises(ExecutableError, match=r"m\.lbx (was cut|holds other constants).*renaming"):
            use(executable)
    assert not (file.parent / "again.lbx").exists()


def test_a_child_process_reads_what_no_thread_of_its_own_will(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_watch, "_READ_AT_ONCE", 0)
    monkeypatch.setattr(file_watch, "quick_checksum", lambda pieces: time.sleep(0.5) or quick_checksum(pieces))
    finish = file_watch.begin_checks(lb.load(file).files)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            finish()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finish()


def test_a_file_that_was_corrupt_before_is_seen_too(file: Path) -> None:
    flip(file)
    for verify in ("all", True):
        with pytest.raises(ExecutableError, match="corrupt constants"):
            lb.load(file, verify=verify)
    with pytest.raises(ExecutableError, match="other constants"):
        lb.Session(lb.load(file))
    with pytest.raises(ExecutableError, match="other constants"):
        lb.load(file, mapped=False)
    lb.Session(lb.load(file, verify=False))


def test_much_is_verified_where_it_is_requested(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = file.read_bytes()
    size = len(content) - constants_at(content)
    flip(file)
    for most, found in ((size, True), (size - 1, False)):
        monkeypatch.setattr(file_reader, "_VERIFIED_BY_DEFAULT", most)
        with pytest.raises(ExecutableError, match="other constants") if found else nullcontext():
            lb.Session(lb.load(file))
        with pytest.raises(ExecutableError, match="other constants"):
            lb.Session(lb.load(file, verify="bind"))
    executable = lb.load(file)
    file.touch()
    with pytest.raises(ExecutableError, match="other constants"):
        lb.Session(executable)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_corruption_reaches_a_run(file: Path, saved: bytes, data: st.DataObject) -> None:
    """Bytes anywhere in the file, before it is loaded or after: refused by load or by the Session, or harmless."""
    content = bytearray(saved)
    places = st.integers(0, len(content) - 1) | st.integers(0, 300) | st.integers(constants_at(saved), len(content) - 1)
    if data.draw(st.booleans(), label="cut"):
        del content[data.draw(places) :]
    else:
        for _ in range(data.draw(st.integers(1, 3))):
            at = data.draw(places)
            size = data.draw(st.integers(1, 5000))
            content[at : at + size] = data.draw(st.sampled_from([bytes, os.urandom]))(len(content[at : at + size]))
    mapped, late = data.draw(st.booleans(), label="mapped"), data.draw(st.booleans(), label="late")
    file.write_bytes(saved)
    os.utime(file, ns=(1, 1))
    executable = lb.load(file, mapped=mapped) if late else None
    with file.open("r+b") as into:
        into.write(content)
        into.truncate()
    try:
        right(executable or lb.load(file, mapped=mapped))
    except ExecutableError:
        assert bytes(content) != saved and not (late and not mapped)
        return
    assert late or bytes(content) == saved
    if late and mapped:  # the code was read when it was loaded
        assert content[constants_at(saved) :] == saved[constants_at(saved) :]


def test_replacing_by_a_rename_and_touching_are_no_change(file: Path, saved: bytes) -> None:
    executable = lb.load(file)
    right(executable)
    executable.save(file)
    (file.parent / "other").write_bytes(bytes(10))
    (file.parent / "other").rename(file)
    right(executable)
    file.write_bytes(saved)
    for verify in ("auto", "bind", "all", False):
        executable = lb.load(file, verify=verify)
        file.touch()
        right(executable)
        right(executable)


@pytest.mark.parametrize("damage", [cut, empty, flip, replace])
def test_constants_that_were_read_are_the_processes_own(file: Path, damage: Callable[[Path], None]) -> None:
    executable = lb.load(file, mapped=False)
    session = lb.Session(executable, num_threads=1)
    damage(file)
    np.testing.assert_array_equal(np.asarray(session(X)[0]), WEIGHTS + 1)
    right(executable)
    for array in executable.constants.values():
        assert not array.flags.writeable and array.ctypes.data % 256 == 0
    assert str(file) not in Path("/proc/self/maps").read_text()


def test_copies_of_an_executable_watch_nothing(file: Path) -> None:
    executable = lb.load(file)
    for made in (pickle.loads(pickle.dumps(executable)), copy.deepcopy(executable)):
        assert made == made and not made.files
        right(made)
    empty(file)
    right(made)


def test_nothing_stays_open(file: Path) -> None:
    for _ in range(5):
        right(lb.load(file))
        lb.load(file, mapped=False)
    gc.collect()
    links = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]  # noqa: PTH208
    assert str(file.resolve()) not in links


def test_other_words_for_verify_are_refused(file: Path) -> None:
    with pytest.raises(InputError, match="'auto', 'bind', 'all'"):
        lb.load(file, verify="some")  # type: ignore[arg-type]


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(ExecutableError, match="no regular file"):
            lb.load(path)
    with pytest.raises(OSError, match="nowhere"):
        lb.load(tmp_path / "nowhere")


@given(st.lists(st.tuples(st.integers(0, 9000), st.integers(0, 40)), max_size=4), st.data())
def test_the_checksum_is_of_the_bytes_wherever_they_are_cut(pieces: list[tuple[int, int]], data: st.DataObject) -> None:
    rng = np.random.default_rng(len(pieces))
    arrays, offset = [], 0
    for size, gap in pieces:
        arrays.append((offset, rng.integers(0, 256, size, np.uint8)))
        offset += -(-size // 8) * 8 + 8 * gap
    whole = np.zeros(offset, np.uint8)
    for at, array in arrays:
        whole[at : at + array.size] = array
    wanted = quick_checksum([(0, whole)])
    assert quick_checksum(arrays) == wanted
    # An independent reference: columns of 512 words, added modulo 2 ** 64.
    words = np.frombuffer(whole.tobytes() + bytes(-offset % 4096), "<u8").reshape(-1, 512)
    sums = [sum(int(word) for word in column) % (1 << 64) for column in words.T] if offset else [0] * 512
    assert wanted == __import__("hashlib").sha256(np.array(sums, "<u8").tobytes()).hexdigest()
    if offset:
        whole[data.draw(st.integers(0, offset - 1))] ^= 1 << data.draw(st.integers(0, 7))
        assert quick_checksum([(0, whole)]) != wanted


def external(folder: Path) -> Path:
    onnx.save(proto(), folder / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    os.utime(folder / "w.bin", ns=(1, 1))
    return folder / "m.onnx"


def test_small_external_data_is_read(tmp_path: Path) -> None:
    executable = lb.compile(external(tmp_path))
    os.truncate(tmp_path / "w.bin", 0)
    right(executable)


def test_large_external_data_is_mapped_and_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external_data, "_MOST_READ", 1000)
    for damage in (lambda: os.truncate(tmp_path / "w.bin", 4096), lambda: (tmp_path / "w.bin").touch()):
        executable = lb.compile(external(tmp_path))
        right(executable)
        damage()
        with pytest.raises(ExecutableError, match=r"w\.bin.*compile again"):
            lb.Session(executable)


def test_external_data_that_is_too_short_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = external(tmp_path)
    os.truncate(tmp_path / "w.bin", 5000)
    for most in (external_data._MOST_READ, 1000):
        monkeypatch.setattr(external_data, "_MOST_READ", most)
        with pytest.raises(lb.ImportModelError, match=r"m\.onnx"):
            lb.compile(path)
