"""SHA-256: of what is small without OpenSSL, as loading that takes longer than digesting a program does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

#: Bytes up to which Python's own code is faster than loading OpenSSL's, which takes 3 ms and has five times the speed.
_SMALL = 1 << 19
#: The modules that have it, from Python 3.12 on and before.
_OWN = ("_sha2", "_sha256")


def sha256(pieces: Iterable[bytes | memoryview]) -> bytes:
    """The SHA-256 of ``pieces``, of bytes each, one after another."""
    begin: Callable[[], Any] | None = None
    read, held = 0, []
    source = iter(pieces)
    for piece in source:
        held.append(piece)
        read += len(piece)
        if read > _SMALL:
            begin = _of_openssl()
            break
    hasher = (begin or _of_python())()
    for piece in held:
        hasher.update(piece)
    for piece in source:
        hasher.update(piece)
    digest: bytes = hasher.digest()
    return digest


def _of_python() -> Callable[[], Any]:
    for name in _OWN:
        try:
            made: Callable[[], Any] = import_module(name).sha256
        except (ImportError, AttributeError):  # another Python, or one built without
            continue
        return made
    return _of_openssl()


def _of_openssl() -> Callable[[], Any]:
    from hashlib import sha256

    return sha256
