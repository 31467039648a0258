"""Files are written whole or not at all, and never over what must not be replaced."""

from __future__ import annotations

import errno
import fcntl
import os
import random
import resource
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from landbridge.errors import LandbridgeError, OutputFileError
from landbridge.files import output_file
from landbridge.files.output_file import check_folder, check_outputs, open_output, write_text

OLD, NEW = "old", "new content"


@pytest.fixture(params=["without a name", "hidden"])
def _files(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways: files without a name, and what is done where the file system has none."""
    if request.param == "without a name":
        return
    real = os.open

    def no_tmpfile(path: str, flags: int, *args: int, **options: int) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        return real(path, flags, *args, **options)

    monkeypatch.setattr(os, "open", no_tmpfile)


both = pytest.mark.usefixtures("_files")


@pytest.fixture
def umask() -> Iterator[Callable[[int], object]]:
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


@both
def test_it_is_written_and_nothing_else(tmp_path: Path) -> None:
    for text in (OLD, NEW):
        write_text(tmp_path / "a", text)
        assert (tmp_path / "a").read_text() == text
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


@both
def test_links_are_followed_and_stay(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "real").write_text(OLD)
    (tmp_path / "second").symlink_to("folder/real")
    (tmp_path / "first").symlink_to(tmp_path / "second")
    (tmp_path / "hard").hardlink_to(tmp_path / "folder" / "real")
    write_text(tmp_path / "first", NEW)
    assert (tmp_path / "first").is_symlink() and (tmp_path / "second").is_symlink()
    assert (tmp_path / "folder" / "real").read_text() == NEW
    assert (tmp_path / "hard").read_text() == OLD, "a replaced file keeps its other names"
    (tmp_path / "dangling").symlink_to("folder/later")
    write_text(tmp_path / "dangling", NEW)
    assert (tmp_path / "dangling").is_symlink() and (tmp_path / "folder" / "later").read_text() == NEW


@both
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
def test_the_mode_of_a_file_is_retained_and_that_of_a_new_one_obeys_the_umask(
    tmp_path: Path, umask: Callable[[int], object], mode: int
) -> None:
    umask(0o027)
    (tmp_path / "old").write_text(OLD)
    (tmp_path / "old").chmod(mode)
    write_text(tmp_path / "old", NEW)
    write_text(tmp_path / "new", NEW)
    with open_output(tmp_path / "library", executable=True) as file:
        file.write(b"code")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("old", "new", "library")]
    assert modes == [mode, 0o640, 0o750]


@both
def test_the_owner_is_retained(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    (tmp_path / "a").write_text(OLD)
    os.chown(tmp_path / "a", 1234, 2345)
    write_text(tmp_path / "a", NEW)
    found = (tmp_path / "a").stat()
    assert (found.st_uid, found.st_gid) == (1234, 2345)


def _special(folder: Path, kind: str) -> Path:
    path = folder / kind
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(str(path))
        case "folder":
            path.mkdir()
        case "loop":
            path.symlink_to(path)
        case "device":
            path.symlink_to("/dev/null")
        case "below a file":
            path.write_text(OLD)
            path = path / "a"
        case "nowhere":
            path = path / "a"
        case "too long":
            path = folder / ("a" * 300)
        case "slash":
            return Path(f"{path}/")
        case "null":
            path = folder / "a\0b"
    return path


KINDS = ["pipe", "socket", "folder", "loop", "device", "below a file", "nowhere", "too long", "null"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_place_for_a_file_is_refused_and_left_alone(tmp_path: Path, kind: str) -> None:
    path = _special(tmp_path, kind)
    before = sorted(entry.name for entry in tmp_path.iterdir())
    for ask in (lambda: check_outputs([path]), lambda: write_text(path, NEW)):
        with pytest.raises(OutputFileError, match=r"cannot be written|not a path of a file") as caught:
            ask()
        assert isinstance(caught.value, OSError) and isinstance(caught.value, LandbridgeError)
        assert str(path).replace("\0", "\\x00") in str(caught.value)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == before
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_the_name_of_a_folder_is_none_of_a_file(tmp_path: Path) -> None:
    for path in (f"{tmp_path}/new/", ""):
        with pytest.raises(OutputFileError, match="folder"):
            check_outputs([path])


def test_an_open_file_without_a_name_is_refused(tmp_path: Path) -> None:
    fd = os.memfd_create("nameless")
    try:
        with pytest.raises(OutputFileError, match="without a name"):
            write_text(f"/proc/self/fd/{fd}", NEW)
    finally:
        os.close(fd)


def test_what_it_is_made_from_is_refused_by_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = tmp_path / "model", tmp_path / "data"
    for file in (model, data):
        file.write_text(OLD)
    (tmp_path / "link").symlink_to(model)
    (tmp_path / "hard").hardlink_to(data)
    monkeypatch.chdir(tmp_path)
    for path in (model, "model", "./model", f"../{tmp_path.name}/model", "link", "hard", data):
        for ask in (lambda p: check_outputs([p], [model, data]), lambda p: write_text(p, NEW, [model, data])):
            with pytest.raises(OutputFileError, match="made from"):
                ask(path)
    assert model.read_text() == data.read_text() == OLD
    write_text("another", NEW, [model, data, tmp_path / "gone"])


def test_two_outputs_want_two_files(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("a")
    with pytest.raises(OutputFileError, match="another output"):
        check_outputs([tmp_path / "a", None, tmp_path / "link"])
    check_outputs([tmp_path / "a", None, tmp_path / "b"])
    assert not (tmp_path / "a").exists()


def test_folders_that_can_be_made(tmp_path: Path) -> None:
    check_folder(tmp_path / "a" / "b")
    assert not (tmp_path / "a").exists()
    (tmp_path / "file").write_text(OLD)
    for path in (tmp_path / "file", tmp_path / "file" / "a"):
        with pytest.raises(OutputFileError, match="not a folder"):
            check_folder(path)


@both
@pytest.mark.parametrize("failing", ["fsync", "rename", "write"])
def test_a_failure_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    path = tmp_path / "a"
    path.write_text(OLD)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if failing != "write":
        monkeypatch.setattr(os, failing, full)
    refused = pytest.raises(OutputFileError, match=r"a cannot be written: No space left.*unchanged")
    with refused as caught, open_output(path) as file:
        file.write(b"half")
        if failing == "write":
            full()
    assert caught.value.errno == errno.ENOSPC
    assert path.read_text() == OLD
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_a_limit_of_the_system_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
    try:
        with pytest.raises(OutputFileError, match="File too large"), open_output(tmp_path / "a") as file:
            file.write(bytes(2 << 20))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(tmp_path.iterdir())


@both
def test_what_the_writer_raises_is_raised(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), open_output(tmp_path / "a") as file:
        file.write(bytes(1 // 0))
    assert not list(tmp_path.iterdir())


@both
def test_leftovers_are_removed_unless_somebody_writes_them(tmp_path: Path) -> None:
    left, written, foreign = (tmp_path / name for name in (".landbridge-1.tmp", ".landbridge-2.tmp", ".other-1.tmp"))
    for file in (left, written, foreign):
        file.write_text(OLD)
    os.mkfifo(tmp_path / ".landbridge-3.tmp")
    with written.open("rb") as busy:
        fcntl.flock(busy, fcntl.LOCK_EX)
        write_text(tmp_path / "a", NEW)
    assert sorted(e.name for e in tmp_path.iterdir()) == [".landbridge-2.tmp", ".landbridge-3.tmp", ".other-1.tmp", "a"]


def test_two_that_write_the_same_new_file(tmp_path: Path) -> None:
    with open_output(tmp_path / "a") as first:
        first.write(b"first")
        write_text(tmp_path / "a", "second")
    assert (tmp_path / "a").read_text() == "first"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


WRITER = """
import sys, itertools
from landbridge.files import output_file
if sys.argv[2] == "hidden":
    output_file._NO_TMPFILE = (0,)
    real = output_file.os.open
    def no_tmpfile(path, flags, *args, **options):
        if flags & output_file.os.O_TMPFILE == output_file.os.O_TMPFILE:
            raise OSError(0, "no files without a name")
        return real(path, flags, *args, **options)
    output_file.os.open = no_tmpfile
print(flush=True)
for i in itertools.count():
    with output_file.open_output(sys.argv[1]) as file:
        for _ in range(16):
            file.write(bytes([i % 256]) * 65536)
"""


@pytest.mark.parametrize("way", ["without a name", "hidden"])
def test_a_kill_at_any_moment_leaves_a_whole_file_and_the_next_write_nothing_else(tmp_path: Path, way: str) -> None:
    path, rng = tmp_path / "a", random.Random(0)
    for _ in range(4):
        with subprocess.Popen([sys.executable, "-c", WRITER, path, way], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(rng.uniform(0, 0.05))
            process.send_signal(signal.SIGKILL)
        if path.exists():
            content = path.read_bytes()
            assert content == content[:1] * (1 << 20)
    write_text(tmp_path / "b", NEW)
    assert {entry.name for entry in tmp_path.iterdir()} <= {"a", "b"}


def test_a_file_that_may_not_be_written_to_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text(OLD)
    (tmp_path / "a").chmod(0o400)
    if os.geteuid() == 0:  # whom modes do not bind
        real = os.access
        monkeypatch.setattr(
            output_file.os, "access", lambda p, mode: real(p, mode) and not (mode & os.W_OK and Path(p).is_file())
        )
    with pytest.raises(OutputFileError, match="may not write"):
        write_text(tmp_path / "a", NEW)
    assert (tmp_path / "a").read_text() == OLD
