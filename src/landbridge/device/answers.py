"""What a device answers, which is a plugin's: of the form that the contract says, or an error that names it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Protocol

from landbridge.errors import DeviceError, LandbridgeError
from landbridge.memory_kind import GLOBAL_SCOPE, MemoryKind


class Answering(Protocol):
    """What is asked here of a DeviceAPI."""

    name: ClassVar[str]

    def count(self) -> int: ...

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]: ...


def failure(device: str, work: str, error: Exception) -> DeviceError:
    """The error to raise where ``device`` raised ``error`` in ``work``, none of Landbridge's."""
    return DeviceError(
        f"device {device} failed at {work}: {raised(error)}; its plugin is to raise an error of landbridge.errors "
        "that says what is wrong"
    )


def raised(error: BaseException) -> str:
    """``error`` as a line: its type, what it says, and the line that raised it, which its author looks for."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    where = "" if last is None else f" (line {last.tb_lineno} of {Path(last.tb_frame.f_code.co_filename).name})"
    return f"{type(error).__name__}: {error}{where}"


@contextmanager
def answering(device: str, work: str) -> Iterator[None]:
    """Call ``device`` for ``work``; what it raises that is no error of Landbridge is a DeviceError."""
    try:
        yield
    except (LandbridgeError, MemoryError):
        raise
    except Exception as error:
        raise failure(device, work, error) from error


def count_of(api: Answering) -> int:
    """How many instances ``api`` has; raises DeviceError where it does not say."""
    with answering(api.name, "count()"):
        found: object = api.count()
    if type(found) is not int or found < 0:
        raise DeviceError(f"device {api.name}: count() is {found!r}; legal: an int of at least 0")
    return found


def kinds_of(api: Answering, index: int) -> Mapping[str, MemoryKind]:
    """The MemoryKind of each scope; raises DeviceError where the device gives anything else."""
    name = f"{api.name}:{index}"
    with answering(name, "memory_kinds()"):
        found: object = api.memory_kinds(index)
    if (
        isinstance(found, Mapping)
        and GLOBAL_SCOPE in found
        and all(isinstance(kind, MemoryKind) for kind in found.values())
    ):
        return found
    raise DeviceError(
        f"device {name}: memory_kinds() is {found!r}; legal: a mapping from each scope to its MemoryKind, with "
        f"{GLOBAL_SCOPE!r} among them"
    )
