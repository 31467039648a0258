"""SHA-256 without OpenSSL for short data, as loading OpenSSL takes longer than the digest of a program."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

#: Bytes up to which Python's own code is faster than loading OpenSSL's, which takes 3 ms and has five times the speed.
_SMALL = 1 << 19
#: The module of Python's own code.
_OWN = "_sha2" if sys.version_info >= (3, 12) else "_sha256"


def sha256(pieces: Iterable[bytes | memoryview]) -> bytes:
    """Returns the SHA-256 of the concatenated ``pieces``."""
    begin = _of_python
    read, held = 0, []
    source = iter(pieces)
    for piece in source:
        held.append(piece)
        read += len(piece)
        if read > _SMALL:
            begin = _of_openssl()
            break
    hasher = begin()
    for piece in held:
        hasher.update(piece)
    for piece in source:
        hasher.update(piece)
    digest: bytes = hasher.digest()
    return digest


def _of_openssl() -> Callable[[], Any]:
    from hashlib import sha256

    return sha256


def _package_code(module: str) -> Callable[[], Any]:
    """Returns Python's built-in hash constructor, or OpenSSL's where this Python is another version or was built
    without it.
    """
    try:
        created: Callable[[], Any] = import_module(module).sha256
    except (ImportError, AttributeError):
        return _of_openssl()
    return created


# Found once: looking for a missing module takes a lock of the import system, which a fork would leave locked.
_of_python = _package_code(_OWN)
