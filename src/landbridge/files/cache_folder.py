"""The folder of cached files: compiled programs, what drivers made of them, processors and measured tiles, within one
limit of bytes.

Only this user can access the files. One appears whole, by a rename, and is never written again, so that processes need
not wait for each other; a process that maps a removed file keeps it. The times of access, which are set at each use,
say which files were used last. When there are too many bytes, the least recently used files are removed.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

from landbridge.errors import InputError
from landbridge.files.output_file import open_output
from landbridge.files.user_cache import user_cache
from landbridge.records import record

#: ``0`` keeps nothing, a path names another folder.
SWITCH = "LANDBRIDGE_CACHE"
#: How many bytes are kept at most.
LIMIT = "LANDBRIDGE_CACHE_BYTES"
_LIMIT = 2 << 30
#: What a file is, by the end of its name; other files in the folder are left alone.
PROGRAM, DRIVER_BINARY, PROCESSOR, TILES = ".lbx", ".driver", ".processor", ".tiles"
_SUFFIXES = (PROGRAM, DRIVER_BINARY, PROCESSOR, TILES)


class Used(NamedTuple):
    """One cached file; the time since its last use decides how long it stays."""

    used_ns: int
    nbytes: int
    path: Path


@record(frozen=True)
class CacheFolder:
    """The cached files in ``path``, of ``limit`` bytes at most together."""

    path: Path
    limit: int

    def note_use(self, file: Path) -> None:
        """Records that ``file`` was used now; raises OSError."""
        os.utime(file, ns=(time.time_ns(), file.stat().st_mtime_ns))

    @contextmanager
    def new_file(self, name: str) -> Iterator[IO[bytes]]:
        """Opens a file for the content of ``name``, which appears there when the block ends; then removes files beyond
        the limit. Raises OSError.
        """
        with open_output(self.path / name, lasting=False) as file:
            yield file
        self._shrink()

    def remove(self, name: str) -> None:
        """Removes the file ``name`` where there is one that can be removed."""
        with suppress(OSError):
            (self.path / name).unlink()

    def entries(self) -> list[Used]:
        """Returns every cached file, the last used first."""
        return sorted(self._entries(), reverse=True)

    def clear(self) -> None:
        """Removes every cached file."""
        for entry in self._entries():
            self.remove(entry.path.name)

    def _entries(self) -> Iterator[Used]:
        for file in self.path.glob("*"):
            if file.suffix in _SUFFIXES:
                with suppress(OSError):  # another process removed it
                    found = file.stat()
                    yield Used(max(found.st_atime_ns, found.st_mtime_ns), found.st_size, file)

    def _shrink(self) -> None:
        left = self.limit
        for entry in self.entries():
            left -= entry.nbytes
            if left < 0:
                self.remove(entry.path.name)


def open_folder() -> CacheFolder | None:
    """Returns the folder that the environment names, made where there is none; None where nothing is cached.

    Without ``LANDBRIDGE_CACHE`` it is in the user's own cache folder, and nothing is cached where that cannot be used.
    Raises InputError where the named folder cannot be used, or ``LANDBRIDGE_CACHE_BYTES`` is no number.
    """
    named = os.environ.get(SWITCH, "")
    if named == "0":
        return None
    limit = _limit()
    path = Path(named) if named else _default()
    if path is None:
        return None
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.stat()
    except OSError as error:
        reason: str | None = error.strerror or str(error)
    else:
        reason = _unsafe(found) or (None if os.access(path, os.W_OK | os.X_OK) else "you may not write to it")
    if reason is None:
        return CacheFolder(path, limit)
    if named:
        raise InputError(
            f"{SWITCH}={named}: compiled programs cannot be kept there: {reason}; name a folder of your own, "
            f"or {SWITCH}=0 to keep none"
        )
    return None


def _default() -> Path | None:
    base = user_cache()
    return None if base is None else base / "landbridge" / "compiles"


def _limit() -> int:
    declared = os.environ.get(LIMIT, "")
    if not declared:
        return _LIMIT
    if not declared.isascii() or not declared.isdigit():
        raise InputError(f"{LIMIT}={declared} is not a number of bytes; give one such as {_LIMIT}")
    return int(declared)


def _unsafe(found: os.stat_result) -> str | None:
    """Returns why other users could have put code there, which would run as this user; None where they could not."""
    if found.st_uid != os.geteuid():
        return "it is another user's"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others may write to it (mode {stat.S_IMODE(found.st_mode):o})"
    return None
