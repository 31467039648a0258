"""Copies of memory that is mapped as registers, where unaligned and vector accesses fault."""

from __future__ import annotations

import ctypes

_WORD = 4


def register_copy(target: int, source: int, nbytes: int) -> None:
    """Copy ``nbytes`` bytes from address ``source`` to ``target``, which do not overlap, in aligned words.

    Bytes one by one where the two have different alignments. It is slow: a loop of Python, which keeps the GIL.
    """
    head = min(-source % _WORD, nbytes) if (source - target) % _WORD == 0 else nbytes
    words = (nbytes - head) // _WORD
    _each(ctypes.c_uint8, target, source, head)
    _each(ctypes.c_uint32, target + head, source + head, words)
    done = head + words * _WORD
    _each(ctypes.c_uint8, target + done, source + done, nbytes - done)


def _each(kind: type[ctypes.c_uint8 | ctypes.c_uint32], target: int, source: int, count: int) -> None:
    # An element of such an array is read and written by one access of its size, a slice by memcpy.
    there, here = (kind * count).from_address(target), (kind * count).from_address(source)
    for index in range(count):
        there[index] = here[index]
