"""SHA-256: of what is small without OpenSSL, as loading that takes longer than digesting a program does."""

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
    """The SHA-256 of ``pieces``, of bytes each, one after another."""
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
    """Python's own code, or OpenSSL's where this Python is another one or was built without."""
    try:
        created: Callable[[], Any] = import_module(module).sha256
    except (ImportError, AttributeError):
        return _of_openssl()
    return created


# Found once: looking for a module that there is not takes a lock of the import system, and a fork leaves that taken.
_of_python = _package_code(_OWN)
