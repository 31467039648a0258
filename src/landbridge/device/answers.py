"""Checks of what a plugin's device returns: values of the contract's form, or an error that names the device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Protocol

from landbridge.errors import DeviceError, LandbridgeError
from landbridge.memory_kind import GLOBAL_SCOPE, MemoryKind


class Answering(Protocol):
    """The part of a DeviceAPI whose results are checked here."""

    name: ClassVar[str]

    def count(self) -> int: ...

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]: ...


#: One more than the largest unsigned integer of 64 bits.
_WORDS = 1 << 64


def failure(device: str, work: str, error: Exception, method: str = "") -> DeviceError:
    """Returns the error to raise where ``method`` of ``device``, called for ``work``, raised a foreign ``error``."""
    called = f", in {method}()" if method else ""
    return DeviceError(
        f"device {device} failed at {work}{called}: {raised(error)}; its plugin is to raise an error of "
        "landbridge.errors that says what is wrong"
    )


def raised(error: BaseException) -> str:
    """Returns ``error`` as one line: its type, its message, and the source line that raised it, for the plugin's
    author.
    """
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    where = "" if last is None else f" (line {last.tb_lineno} of {Path(last.tb_frame.f_code.co_filename).name})"
    return f"{type(error).__name__}: {error}{where}"


@contextmanager
def answering(device: str, work: str) -> Iterator[None]:
    """Convert exceptions of the ``with`` block, which calls ``device`` for ``work``, into DeviceErrors unless they are
    ours.
    """
    try:
        yield
    except (LandbridgeError, MemoryError):
        raise
    except Exception as error:
        raise failure(device, work, error) from error


def refusal(device: object, method: str, found: object, legal: str) -> DeviceError:
    """Returns the error to raise where ``method`` of ``device`` returned ``found``; ``legal`` says what it may
    return.
    """
    return DeviceError(
        f"device {device}: {method}() returned {found!r}; legal: {legal}, or an error of landbridge.errors"
    )


def truth(found: object, device: object, method: str) -> bool:
    """Returns ``found``, the result of ``method`` of ``device``; raises DeviceError unless it is a bool."""
    if found is True or found is False:
        return found
    raise refusal(device, method, found, "True or False")


def number(found: object, device: object, method: str, legal: str, below: int = _WORDS) -> int:
    """Returns ``found``, the result of ``method`` of ``device``; raises DeviceError unless it is an int in range.

    Legal are integers from 0 up to, not including, ``below``. ``legal`` says in the message what the number is.
    """
    if type(found) is int and 0 <= found < below:
        return found
    raise refusal(device, method, found, f"{legal}, an int from 0 to {below - 1:#x}")


def texts(found: object, device: object, method: str, legal: str) -> Sequence[str]:
    """Returns ``found``, the result of ``method`` of ``device``; raises DeviceError unless it is a sequence of str."""
    if isinstance(found, Sequence) and not isinstance(found, str) and all(isinstance(each, str) for each in found):
        return found
    raise refusal(device, method, found, f"a sequence of {legal}, each a str")


def count_of(api: Answering) -> int:
    """Returns how many instances ``api`` has; raises DeviceError where it returns no count."""
    with answering(api.name, "count()"):
        found: object = api.count()
    if type(found) is not int or found < 0:
        raise DeviceError(f"device {api.name}: count() is {found!r}; legal: an int of at least 0")
    return found


def kinds_of(api: Answering, index: int) -> Mapping[str, MemoryKind]:
    """Returns the MemoryKind of each scope; raises DeviceError where the device returns anything else."""
    name = f"{api.name}:{index}"
    with answering(name, "memory_kinds()"):
        found: object = api.memory_kinds(index)
    if (
        isinstance(found, Mapping)
        and GLOBAL_SCOPE in found
        and all(isinstance(kind, MemoryKind) and kind.scope == scope for scope, kind in found.items())
    ):
        return found
    raise DeviceError(
        f"device {name}: memory_kinds() is {found!r}; legal: a mapping from each scope to its MemoryKind, with "
        f"{GLOBAL_SCOPE!r} among them"
    )
