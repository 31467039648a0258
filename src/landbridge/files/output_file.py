"""Writes files completely or not at all, and refuses to replace files that must be kept.

One rule for every file: a symbolic link is followed and stays; what is no regular file, cannot be written to, or is a
file that the content was made from is refused before any work; the new file replaces the old one by a rename, with
its mode and, where permitted, its owner; file and folder are on the disk on return.

Until then the bytes have no name (``O_TMPFILE``). Where the file system has no such files, or at the moment when one
replaces another, they have a hidden one and a lock: a process that is killed then leaves it, and the next one that
writes into the folder finds it without its lock and removes it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

from landbridge.errors import LandbridgeError, OutputFileError

_PREFIX, _SUFFIX = ".landbridge-", ".tmp"
_ACL = "system.posix_acl_access"
#: What kernels and file systems answer that have no files without a name.
_NO_TMPFILE = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT, errno.ENOSYS)
#: What they answer that cannot sync a folder, or not for this user.
_NO_SYNC = (errno.EINVAL, errno.EOPNOTSUPP, errno.EACCES, errno.EPERM, errno.ENOSYS)
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


class _Location(NamedTuple):
    """The path that a file is written to, with links followed, and the status of what exists there."""

    folder: Path
    name: str
    found: os.stat_result | None


def check_outputs(paths: Iterable[str | Path | None], sources: Iterable[str | Path] = ()) -> None:
    """Raises OutputFileError unless files can be written to all ``paths`` and none of ``sources`` is there.

    Asked before long work, so that its results have a place. ``sources`` are compared by what they are, not by name;
    no two paths may lead to one file. None is no path.
    """
    sources, seen = list(sources), set()
    for path in paths:
        if path is None:
            continue
        with _failures(path):
            location = _location(path, sources)
        if location[:2] in seen:
            raise _error(path, "another output goes there; name another file", errno.EEXIST)
        seen.add(location[:2])


def check_folder(path: str | Path) -> None:
    """Raises OutputFileError unless ``path`` is a folder that files can be written into, or can become one."""
    with _failures(path):
        _check_text(path)
        folder = Path(os.path.realpath(path))
        while not os.path.lexists(folder) and folder != folder.parent:
            folder = folder.parent
        _check_writable(folder, path)


def make_folder(path: str | Path) -> None:
    """Makes the folder ``path``, and those above it, where there is none; raises OutputFileError."""
    with _failures(path):
        Path(path).mkdir(parents=True, exist_ok=True)


@contextmanager
def open_output(
    path: str | Path, sources: Iterable[str | Path] = (), *, executable: bool = False, lasting: bool = True
) -> Iterator[IO[bytes]]:
    """Opens a file for the content of ``path``; it replaces ``path`` when the block ends, and ``path`` is unchanged
    when that raises.

    ``executable``: a new file may be executed by those who may read it. ``lasting``: it is on the disk then; without, a
    system that stops soon after may leave a part of it. Raises OutputFileError, which is an OSError,
    for a place that ``check_outputs`` refuses and for any failure of the system, a full disk for one.
    """
    with _failures(path), ExitStack() as stack:
        location = _location(path, sources)
        folder, hidden = _open_folder(location.folder, stack), _hidden()
        _remove_leftovers(folder)
        # The replacement of a private file is private from its first byte on.
        mode = 0o600 if location.found else 0o777 if executable else 0o666
        stack.callback(_unlink, hidden, folder)
        descriptor, is_named = _create(folder, hidden, mode)
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            if location.found is not None:
                _take_after(descriptor, location, location.found)
            if lasting:
                os.fsync(descriptor)
            _name(descriptor, is_named, hidden, location, folder)
        if lasting:
            _sync(location.folder)


def write_together(
    folder: str | Path,
    contents: Mapping[str, bytes],
    sources: Iterable[str | Path] = (),
    *,
    executables: Collection[str] = (),
) -> list[Path]:
    """Writes files that fit each other alone: all of ``contents``, by name, to ``folder``, or none of them.

    The folder is made if it is missing. ``executables`` are the names of those that may be executed. Returns the paths,
    in order. Raises OutputFileError as ``open_output``.
    """
    location, sources = Path(os.fspath(folder)), list(sources)
    make_folder(location)
    paths = [location / name for name in contents]
    check_outputs(paths, sources)
    with ExitStack() as written:
        for path, content in zip(paths, contents.values(), strict=True):
            opened = written.enter_context(open_output(path, sources, executable=path.name in executables))
            opened.write(content)
            opened.flush()
    return paths


def write_text(path: str | Path, text: str, sources: Iterable[str | Path] = ()) -> None:
    """Writes ``text`` as UTF-8 to ``path``; see ``open_output``."""
    content = text.encode(errors="backslashreplace")  # names of tensors may hold any character
    with open_output(path, sources) as file:
        file.write(content)


@contextmanager
def _failures(path: str | Path) -> Iterator[None]:
    """Converts failures of the system to OutputFileErrors that name the file as the user did."""
    try:
        yield
    except LandbridgeError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise _error(
            path, f"{reason}; what was there before is unchanged: make room or name another file", error.errno
        ) from error


def _error(path: str | Path, reason: str, number: int | None = None) -> OutputFileError:
    error = OutputFileError(f"{path} cannot be written: {reason}")
    error.errno = number
    return error


def _check_text(path: str | Path) -> None:
    if "\0" in os.fspath(path):
        raise OutputFileError(f"{str(path)!r} is not a path of a file: it has a null character")


def _location(path: str | Path, sources: Iterable[str | Path]) -> _Location:
    _check_text(path)
    if not os.fspath(path) or os.fspath(path).endswith(os.sep):
        raise _error(path, "this is the name of a folder; name a file", errno.EISDIR)
    try:
        found = Path(path).stat()
    except FileNotFoundError:
        found = None  # a dangling link is followed too
    real = Path(os.path.realpath(path))
    folder, name = real.parent, real.name
    if found is None:
        _check_writable(folder, path)
        return _Location(folder, name, None)
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "no regular file")
        raise _error(path, f"it is {kind}, which no file replaces; name a file", errno.EINVAL)
    if not os.path.lexists(real) or not os.path.samestat(found, real.lstat()):
        raise _error(path, "it is an open file without a name; name a file", errno.EINVAL)
    for source in sources:
        if _is_file(source, found):
            same = "it is" if Path(source) == Path(path) else f"it is the same file as {source},"
            raise _error(path, f"{same} what this is made from; name another file", errno.EEXIST)
    _check_writable(folder, path)
    if not os.access(real, os.W_OK):
        raise _error(path, "you may not write to it (see its mode); allow it or name another file", errno.EACCES)
    return _Location(folder, name, found)


def _is_file(path: str | Path, found: os.stat_result) -> bool:
    try:
        return os.path.samestat(found, Path(path).stat())
    except OSError:  # the file no longer exists
        return False


def _check_writable(folder: Path, path: str | Path) -> None:
    """Raises OutputFileError unless files can be made in ``folder``; it makes one to find out."""
    if not os.path.lexists(folder):
        raise _error(path, f"the folder {folder} does not exist; make it first", errno.ENOENT)
    if not folder.is_dir():
        raise _error(path, f"{folder} is not a folder; name another", errno.ENOTDIR)
    try:
        with ExitStack() as stack:
            descriptor, hidden = _open_folder(folder, stack), _hidden()
            stack.callback(_unlink, hidden, descriptor)
            os.close(_create(descriptor, hidden, 0o600)[0])
    except OSError as error:
        reason = f"the folder {folder} takes no file ({error.strerror})"
        raise _error(path, f"{reason}; allow it or name another", error.errno) from error


def _open_folder(folder: Path, stack: ExitStack) -> int:
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    stack.callback(os.close, descriptor)
    return descriptor


def _hidden() -> str:
    return _PREFIX + os.urandom(8).hex() + _SUFFIX


def _create(folder: int, hidden: str, mode: int) -> tuple[int, bool]:
    """Makes and locks a new file; returns it, and whether it has the name ``hidden`` or none."""
    if Path("/proc/self/fd").exists():  # the name that such a file is linked by
        try:
            descriptor = os.open(".", os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, mode, dir_fd=folder)
        except OSError as error:
            if error.errno not in _NO_TMPFILE:
                raise
        else:
            _lock(descriptor)
            return descriptor, False
    while True:
        descriptor = os.open(hidden, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, mode, dir_fd=folder)
        _lock(descriptor)
        if os.fstat(descriptor).st_nlink:  # checks that no process removed it before it was locked
            return descriptor, True
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    with suppress(OSError):  # on file systems without locks, leftovers are not removed either
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def _name(descriptor: int, is_named: bool, hidden: str, location: _Location, folder: int) -> None:
    """Gives the complete file its name."""
    owned = f"/proc/self/fd/{descriptor}"
    if not is_named and location.found is None:
        with suppress(FileExistsError):  # another process made a file there: replace it
            os.link(owned, location.name, dst_dir_fd=folder)
            return
    if not is_named:
        os.link(owned, hidden, dst_dir_fd=folder)
    os.rename(hidden, location.name, src_dir_fd=folder, dst_dir_fd=folder)


def _take_after(descriptor: int, location: _Location, found: os.stat_result) -> None:
    """Copies owner, access list and mode of the file that is replaced, as far as the system permits."""
    mode = stat.S_IMODE(found.st_mode)
    try:
        os.fchown(descriptor, found.st_uid, found.st_gid)
    except OSError:
        mode &= ~(stat.S_ISUID | stat.S_ISGID)
        with suppress(OSError):
            os.fchown(descriptor, -1, found.st_gid)
    with suppress(OSError):  # most files, and many file systems, have no access list
        os.setxattr(descriptor, _ACL, os.getxattr(location.folder / location.name, _ACL))
    os.fchmod(descriptor, mode)


def _sync(folder: Path) -> None:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def _unlink(name: str, folder: int) -> None:
    with suppress(OSError):
        os.unlink(name, dir_fd=folder)


def _remove_leftovers(folder: int) -> None:
    """Removes hidden files of ended processes: those whose lock is free."""
    try:
        listing = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    except OSError:  # a folder that may be written but not read
        return
    try:
        with os.scandir(listing) as entries:
            names = [e.name for e in entries if e.name.startswith(_PREFIX) and e.name.endswith(_SUFFIX)]
    finally:
        os.close(listing)
    for name in names:
        with suppress(OSError):
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            try:
                if stat.S_ISREG(os.fstat(file).st_mode):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(name, dir_fd=folder)
            finally:
                os.close(file)
