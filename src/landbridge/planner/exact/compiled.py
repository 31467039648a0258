"""The kernel as machine code, where numba is there to make it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from landbridge.planner.exact import kernel
from landbridge.planner.exact.instance import Instance
from landbridge.planner.exact.state import State

Search = Callable[[Instance, State, int, int], int]


@cache
def compiled_search() -> Search | None:
    """`kernel.search` compiled, releasing the GIL; None without numba.

    Compiled for some seconds once per installation, then read from numba's cache beside the source or, where
    that is not writable, in the user's cache folder.
    """
    try:
        from numba import njit
        from numba.extending import register_jitable
    except ImportError:
        return None
    # The kernel's functions stay ordinary Python for those who interpret it.
    for name, function in vars(kernel).items():
        if name.startswith("_") and callable(function):
            register_jitable(function)
    try:
        search: Search = njit(cache=True, nogil=True)(kernel.search)
    except RuntimeError:  # nowhere to keep the machine code: made anew by each process
        search = njit(nogil=True)(kernel.search)
    return search
