"""Compiles the search kernel to machine code with numba, if that is installed."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from landbridge.files.output_file import write_text
from landbridge.planner.exact import kernel, problem, state
from landbridge.planner.exact.problem import Problem
from landbridge.planner.exact.state import SearchState
from landbridge.process.locks import adopt

Search = Callable[[Problem, SearchState, int, int], int]


@cache
def compiled_search() -> Search | None:
    """Returns `kernel.search` compiled, which releases the GIL; None without numba.

    Compiling takes some seconds once per installation; later calls read numba's cache, beside the source or, if that is
    not writable, in the user's cache folder. A cache that is corrupt, or of other sources, is rebuilt; one that cannot
    be read or written is ignored.
    """
    try:
        from numba import njit
        from numba.core.compiler_lock import global_compiler_lock
        from numba.extending import register_jitable
    except ImportError:
        return None
    adopt(getattr(global_compiler_lock, "_lock", None))
    # The kernel's functions stay ordinary Python for the interpreted search.
    for name, function in vars(kernel).items():
        if name.startswith("_") and callable(function):
            register_jitable(function)
    try:
        search = njit(cache=True, nogil=True)(kernel.search)
    except (RuntimeError, OSError):  # no writable cache folder: each process compiles anew
        return _uncached()
    folder = Path(str(search.stats.cache_path))
    with suppress(OSError):
        _remove_unless_sealed(folder)
    try:
        search.compile(_signature())
    except Exception:  # damaged pickles raise anything, and so does writing to a full disk
        return search if search.signatures else _uncached()
    with suppress(OSError):
        _seal(folder)
    return search


def _uncached() -> Search:
    from numba import njit

    search: Search = njit(nogil=True)(kernel.search)
    return search


def _signature() -> tuple[Any, ...]:
    """Returns the argument types of `kernel.search`."""
    import numpy as np
    from numba import int64, typeof

    array = np.zeros(1, np.int64)
    kinds = [typeof(kind(*[array] * len(kind._fields))) for kind in (Problem, SearchState)]  # type: ignore[no-untyped-call]
    return (*kinds, int64, int64)


def _remove_unless_sealed(folder: Path) -> None:
    """Remove machine code that was made from other sources: numba compares the kernel's file only."""
    files = _files(folder)
    if files and (not _seal_of(folder).is_file() or _seal_of(folder).read_text(errors="replace") != _digest(files)):
        for file in files:
            file.unlink(missing_ok=True)


def _seal(folder: Path) -> None:
    """Record which sources the machine code was made from."""
    digest = _digest(_files(folder))
    if not _seal_of(folder).is_file() or _seal_of(folder).read_text(errors="replace") != digest:
        write_text(_seal_of(folder), digest)


def _files(folder: Path) -> list[Path]:
    """Returns the files that numba caches for the search for this version of Python."""
    major, minor = sys.version_info[:2]
    return sorted(folder.glob(f"kernel.search-*.py{major}{minor}*.nb[ic]"))


def _seal_of(folder: Path) -> Path:
    return folder / f"kernel.search.py{sys.version_info[0]}{sys.version_info[1]}.sha256"


def _digest(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in [*(Path(str(module.__file__)) for module in (problem, kernel, state)), *files]:
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
