"""Findings of the sanitizer, raised where possible and otherwise reported when the process ends."""

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
    """Returns every finding of this process so far, also those that were raised."""
    return tuple(_found)


def fail(kind: str, text: str) -> NoReturn:
    """Raises SanitizerError for a fault that the present call made or found."""
    found = Finding(kind, text)
    _found.append(found)
    raise SanitizerError(str(found))


def tell(kind: str, text: str) -> None:
    """Records a fault found where nothing can be raised; standard error gets it when the process ends."""
    found = Finding(kind, text)
    _found.append(found)
    _untold.append(found)


def untold() -> list[Finding]:
    """Returns the findings that were not raised, each once: the caller reports them."""
    reported = _untold.copy()
    _untold.clear()
    return reported


def call_site() -> str:
    """Returns the line outside of this package, or of its conformance suite, that the present call comes from."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        if frame.f_code.co_filename.startswith(_SUITE):
            break
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
