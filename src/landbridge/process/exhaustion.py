"""Recognizes that memory or another resource of the system is exhausted, and reports it as that.

Python reports it in many forms: a MemoryError, an OSError with ENOMEM, an ImportError of a module that could not be
mapped, a RuntimeError where no thread starts, a SystemError where a function gets no frame. A user reads each of them
as another fault, such as a missing package. So public functions report the exhausted resource itself.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from landbridge.errors import LandbridgeError, OutOfMemoryError, ResourceLimitError
from landbridge.identity_map import IdentityMap

#: Messages of glibc's loader if it has no memory for a library.
_LOADER = ("failed to map segment", "cannot allocate memory", "cannot map zero-fill pages")
_NO_THREAD = "can't start new thread"
#: What CPython 3.11 raises, as a SystemError, where there is no memory for the frame of a function; 3.12 a MemoryError.
_NO_FRAME = "error return without exception set"
_FILES = frozenset({errno.EMFILE, errno.ENFILE})


@contextmanager
def reports_exhaustion(work: str) -> Iterator[None]:
    """Runs a block, or decorates a function, so that exhausted memory raises OutOfMemoryError there, and exhausted
    files ResourceLimitError.

    ``work`` says in the message what was being done. Other errors are raised as they are.
    """
    try:
        yield
    except Exception as error:
        raise_exhaustion(error, work)
        raise


def raise_exhaustion(error: BaseException, work: str) -> None:
    """Raises OutOfMemoryError where exhausted memory caused ``error``, ResourceLimitError where ``error`` says that no
    more files can be opened; else returns.

    ``work`` says in the message what was being done. An error of one of these two classes is left to the caller.
    """
    if isinstance(error, OutOfMemoryError | ResourceLimitError):
        return
    if (cause := memory_cause(error)) is not None:
        raise OutOfMemoryError(
            f"memory ended while {work} ({_short(cause)}); end other programs, or raise the limit of this one (ulimit "
            "-v, memory.max of its control group)"
        ) from error
    if isinstance(error, OSError) and error.errno in _FILES and not isinstance(error, LandbridgeError):
        found = ResourceLimitError(
            f"the system opens no more files while {work} ({error.strerror}); close some, or raise the limit (ulimit "
            "-n)"
        )
        found.errno = error.errno
        raise found from error


def memory_cause(error: BaseException) -> BaseException | None:
    """Returns the first error in the chain of causes of ``error`` that means exhausted memory; None where there is
    none.
    """
    return next((each for each in _chain(error) if _says_no_memory(each)), None)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yields ``error``, then the error that caused it or that it was raised while handling, and so on."""
    seen: IdentityMap[BaseException, None] = IdentityMap()  # errors of others may compare by content
    following: BaseException | None = error
    while following is not None and following not in seen:
        seen[following] = None
        yield following
        following = following.__cause__ or (None if following.__suppress_context__ else following.__context__)


def _says_no_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError):
        return True
    text = str(error).lower()
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    if isinstance(error, ImportError | OSError):
        return any(message in text for message in _LOADER)
    if isinstance(error, SystemError):
        return _NO_FRAME in text
    return isinstance(error, RuntimeError) and _NO_THREAD in text


def _short(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__
