"""The process of a BackgroundCompile: it compiles one model into the cache, and ends."""

from __future__ import annotations

import fcntl
import os
import pickle
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

from landbridge.files.cache_folder import open_folder

#: How much less than others the process gets of busy cores.
_NICENESS = 10


def serve() -> None:
    """Compiles what standard input says, after other background compiles of the cache folder; ends this process.

    The status is 0 where the program is in the cache; else standard output says why it is not. The process ends at once
    when standard input does, because the process that wants the result has ended then.
    """
    with suppress(OSError):
        os.nice(_NICENESS)
    descriptor = sys.stdin.fileno()
    given, *request = pickle.load(os.fdopen(descriptor, "rb", buffering=0, closefd=False))
    Thread(target=_end_with_parent, args=(descriptor,), name="parent", daemon=True).start()
    try:
        model = _content(given) if isinstance(given, int) else given
        with _others_done():
            _compile(model, *request)
        status = 0
    except BaseException as error:
        print(f"{type(error).__name__}: {error}"[:2000], flush=True)
        status = 1
    os._exit(status)  # without what Python does at its end, of which nothing is left to be done


def _compile(model: bytes | Path, target: object, shapes: object, dims: object) -> None:
    # imported here, as they import what compiles: the process may wait for others first
    from landbridge.compiler.api import compile
    from landbridge.reporting.stages import listening

    with warnings.catch_warnings(), listening(lambda stage: None):
        warnings.simplefilter("ignore")  # the entry has them, and who reads it is told
        compile(model, target=target, shapes=shapes, dims=dims)  # type: ignore[arg-type]


def _end_with_parent(descriptor: int) -> None:
    """Ends this process and those that it has started once nobody can write to its standard input."""
    while os.read(descriptor, 1):
        pass
    os.killpg(0, signal.SIGKILL)


def _content(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as file:
        file.seek(0)
        return file.read()


@contextmanager
def _others_done() -> Iterator[None]:
    """Waits until no other background compile of the cache folder is under way; on file systems that lock no folders
    does nothing.
    """
    folder = open_folder()
    if folder is None:
        yield
        return
    opened = os.open(folder.path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):
            fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)
