"""Findings: what the sanitizer has to say, raised where it can be and told when the process ends where it cannot."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from landbridge.errors import SanitizerError
from landbridge.records import record

_PACKAGE = str(Path(__file__).parent.parent) + os.sep  # not resolved: code has the path that it was imported by
_SUITE = str(Path(_PACKAGE) / "testing" / "conformance")


@record(frozen=True, slots=True)
class Finding:
    """One fault: its ``kind`` (``"race"``, ``"redzone"``, ...) and the text, which names both accesses."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"sanitizer: {self.kind}: {self.text}"


_found: list[Finding] = []
_untold: list[Finding] = []


def findings() -> tuple[Finding, ...]:
    """Every finding of this process so far, those that were raised too."""
    return tuple(_found)


def fail(kind: str, text: str) -> NoReturn:
    """Raise SanitizerError for a fault that the present call made or came upon."""
    found = Finding(kind, text)
    _found.append(found)
    raise SanitizerError(str(found))


def tell(kind: str, text: str) -> None:
    """Note a fault found where nothing can be raised; standard error has it when the process ends."""
    found = Finding(kind, text)
    _found.append(found)
    _untold.append(found)


def untold() -> list[Finding]:
    """The findings that nothing raised, each once: whoever asks tells them."""
    reported = _untold.copy()
    _untold.clear()
    return reported


def call_site() -> str:
    """The line outside of this package, or of its conformance suite, that the present call comes from."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        if frame.f_code.co_filename.startswith(_SUITE):
            break
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
