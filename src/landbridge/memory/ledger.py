"""The ledger: the only functions that copy bytes at run time, and the record of what they copied.

``ledger()`` collects every Move of the process, worker threads included. ``no_copies()`` makes a copy by the runtime,
or also by kernels, an error before any byte moves. Both cost a run nothing while none is open: ``is_active()`` is
one test.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import memmove
from dataclasses import field
from typing import Any, Literal, NamedTuple

import numpy as np

from landbridge.errors import CopyForbiddenError, InputError
from landbridge.memory.host_array import byte_bounds
from landbridge.memory.repeated_addresses import shifts
from landbridge.records import record

#: The cause of moves by a compiled kernel that only moves data; their bytes are counted separately.
KERNEL_REORDER = "kernel:reorder"


class Move(NamedTuple):
    """``nbytes`` bytes that were moved from ``source`` to ``destination`` (names of devices or owners), with the
    cause.
    """

    nbytes: int
    cause: str
    tensor: str
    source: str
    destination: str

    @property
    def is_kernel(self) -> bool:
        """Returns whether a compiled kernel moved the bytes, as planned, and not the runtime."""
        return self.cause.startswith("kernel:")


@record(eq=False, repr=False)
class Ledger:
    """The Moves that happened while a ``ledger()`` was open, in order."""

    entries: list[Move] = field(default_factory=list)

    @property
    def total_bytes(self) -> int:
        """Returns the bytes that the runtime copied; those of kernels that only move data are in ``kernel_bytes``."""
        return sum(move.nbytes for move in self.entries if not move.is_kernel)

    @property
    def kernel_bytes(self) -> int:
        """Returns the bytes that compiled kernels wrote which only move data."""
        return sum(move.nbytes for move in self.entries if move.is_kernel)

    def __iter__(self) -> Iterator[Move]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        return f"Ledger({len(self)} moves, {self.total_bytes:,} bytes copied, {self.kernel_bytes:,} moved by kernels)"


@record(frozen=True)
class _Forbidden:
    """What one ``no_copies()`` forbids: copies by the runtime, and with ``kernels`` moves by kernels too."""

    kernels: bool


#: Every open ``ledger()`` and ``no_copies()``, by identity. An entry is added and removed by one call of a dict, which
#: no interrupt can split.
_watching: dict[object, Ledger | _Forbidden] = {}


def is_active() -> bool:
    """Returns whether a ``ledger()`` or ``no_copies()`` is open anywhere in the process."""
    return bool(_watching)


@contextmanager
def ledger() -> Iterator[Ledger]:
    """Collect the moves of the process until the end of the ``with``: by the runtime, and by kernels that only move
    data.
    """
    opened = Ledger()
    try:
        _watching[opened] = opened
        yield opened
    finally:
        _watching.pop(opened, None)


@contextmanager
def no_copies(*, kernels: bool = False) -> Iterator[None]:
    """Raises CopyForbiddenError in any thread that is about to copy bytes, until the end of the ``with``.

    That includes kernels that only move what is in a state (``Session.bind_state``): one that copies it to update the
    copy, a Concat of it with new elements. ``kernels``: also others that only move a tensor, as planned: a reorder, for
    example. The run ends before that kernel; what earlier kernels wrote stays written.
    """
    key = object()
    try:
        _watching[key] = _Forbidden(kernels)
        yield
    finally:
        _watching.pop(key, None)


def announce(nbytes: int, *, cause: str, tensor: object, source: object, destination: object) -> None:
    """Record a copy that is about to happen; raises CopyForbiddenError inside ``no_copies()``.

    Call it before the copy. ``copy_array`` calls it itself. ``tensor``, ``source`` and ``destination`` are asked for
    their texts only where somebody records them.
    """
    if not _watching or nbytes == 0:
        return
    if any(isinstance(each, _Forbidden) for each in list(_watching.values())):
        raise CopyForbiddenError(
            f"{cause}: {nbytes} bytes of {tensor or 'a tensor'} would be copied from {source} to {destination} inside "
            "no_copies(); bind the memory by reference, or make the copy outside"
        )
    _enter(Move(nbytes, cause, str(tensor), str(source), str(destination)))


def record_kernel_moves(
    nbytes: int, *, tensor: str, device: str, cause: str = KERNEL_REORDER, of_state: bool = False
) -> None:
    """Record bytes that a compiled kernel is about to move on ``device``.

    They were planned, so ``no_copies()`` forbids only those ``of_state``, of memory that a state was bound to, and
    ``no_copies(kernels=True)`` all, with a CopyForbiddenError.
    """
    if _watching and nbytes:
        forbidden = [each for each in list(_watching.values()) if isinstance(each, _Forbidden)]
        if any(each.kernels or of_state for each in forbidden):
            inside = "no_copies()" if of_state else "no_copies(kernels=True)"
            raise CopyForbiddenError(
                f"{cause}: a kernel would move {nbytes} bytes of {tensor or 'a tensor'} on {device} inside {inside}; "
                "a state stays where it is with compile(alias='auto') and bind_state, or with one memory bound to an "
                "input and an output that compile(alias=) lets be one"
            )
        _enter(Move(nbytes, cause, tensor, device, device))


def _enter(move: Move) -> None:
    for opened in list(_watching.values()):
        if isinstance(opened, Ledger):
            opened.entries.append(move)


def copy_array(
    dst: np.ndarray[Any, Any],
    src: np.ndarray[Any, Any],
    *,
    cause: str,
    tensor: str,
    source: str,
    destination: str,
    casting: Literal["no", "unsafe"] = "no",
) -> None:
    """Copy ``src`` into ``dst``, of the same shape and any strides, without the GIL.

    Raises InputError for another shape, for another dtype unless ``casting`` is "unsafe", for a read-only
    ``dst`` and for arrays that overlap without being the same.
    """
    subject = f"{cause}: {tensor or 'a tensor'}"
    if dst.shape != src.shape:
        raise InputError(f"{subject} has shape {src.shape}, its destination {dst.shape}; they must be equal")
    if casting == "no" and dst.dtype != src.dtype:
        raise InputError(
            f"{subject} has dtype {src.dtype}, its destination {dst.dtype}; a dtype is never cast silently"
        )
    if not dst.flags.writeable:
        raise InputError(f"{subject} cannot be copied to a read-only destination; give a writable array")
    if dst.size == 0:
        return
    (src_low, src_high), (dst_low, dst_high) = byte_bounds(src), byte_bounds(dst)
    for shift in shifts(src_low, dst_low):
        if src_low + shift < dst_high and dst_low < src_high + shift:
            if (src_low + shift, src.strides, src.dtype) == (dst_low, dst.strides, dst.dtype):
                return
            if shift or np.shares_memory(src, dst):
                raise InputError(f"{subject} overlaps its destination; give memory disjoint from the source")
    announce(dst.nbytes, cause=cause, tensor=tensor, source=source, destination=destination)
    np.copyto(dst, src, casting=casting)


def copy_unwatched(destination: int, source: int, nbytes: int) -> None:
    """Copy ``nbytes`` bytes from address ``source`` to ``destination``, without the GIL, while ``is_active()`` is
    False.

    For copies that nothing is to be asked of any more: the memory is there, and the ranges are disjoint.
    """
    memmove(destination, source, nbytes)
