"""Limits the threads of the BLAS that numpy brings, while this package multiplies matrices with it.

OpenBLAS has one number of threads for the process, one for each core by default. Its threads spin while they wait for
each other. Where a compile works on the same cores, a network of small products took 10 times the processor time on
two threads (``benchmarks/results/first_tier.md``).
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import TracebackType

from landbridge.process.locks import new_lock

#: Names of OpenBLAS's functions, by the suffix and prefix with which numpy and distributions build it.
_NAMES = ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}")


class OneBlasThread:
    """A context in which products run on the thread that asks for them. It may be entered by several threads.

    What the number of threads was is restored when the last of them leaves; it is not changed for a BLAS other than
    OpenBLAS. Products of other threads of the process are limited too meanwhile, which changes no result of theirs.
    """

    def __init__(self) -> None:
        self._lock = new_lock()
        self._inside = self._before = 0
        os.register_at_fork(after_in_child=self._forget)

    def __enter__(self) -> None:
        functions = _functions()
        if functions is None:
            return
        count, limit = functions
        with self._lock:
            if not self._inside:
                self._before = count()
                if self._before > 1:
                    limit(1)
            self._inside += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            if not self._inside:
                return
            self._inside -= 1
            if not self._inside:
                self._restore()

    def _restore(self) -> None:
        functions = _functions()
        if functions is not None and self._before > 1:
            functions[1](self._before)

    def _forget(self) -> None:
        """Restores the number in a child process, where the threads that were inside do not exist."""
        if self._inside:
            self._inside = 0
            self._restore()


#: The context that all kernels share, as the number belongs to the process.
one_blas_thread = OneBlasThread()


@cache
def _functions() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Returns OpenBLAS's functions that read and set the number of threads; None where numpy has another BLAS."""
    for path in _loaded():
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for name in _NAMES:
            get = getattr(library, name.format("get_num_threads"), None)
            put = getattr(library, name.format("set_num_threads"), None)
            if get is not None and put is not None:
                get.argtypes, get.restype = [], ctypes.c_int
                put.argtypes, put.restype = [ctypes.c_int], None
                return get, put
    return None


def _loaded() -> list[str]:
    """Returns the paths of the OpenBLAS libraries that this process has loaded."""
    if not sys.platform.startswith("linux"):
        return []
    try:
        with Path("/proc/self/maps").open(encoding="utf-8", errors="replace") as maps:
            lines = [line.rstrip("\n") for line in maps if "openblas" in line]
    except OSError:
        return []
    return sorted({line[line.index("/") :] for line in lines if "/" in line})
