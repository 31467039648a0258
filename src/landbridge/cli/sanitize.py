"""``--sanitize``: sanitizes every device of the process and reports findings at the end of the command."""

from __future__ import annotations

import os

from landbridge.cli.output import message

EXIT_FOUND = 3


def sanitize_all() -> None:
    """Sanitizes every device that is opened from now on; call it before the first one is."""
    from landbridge.process.sanitizing import SANITIZE_VARIABLE

    os.environ[SANITIZE_VARIABLE] = "1"


def exit_on_findings() -> None:
    """Checks all memory once more, prints findings, and exits with 3 if there are any."""
    from landbridge.sanitizer import check_all, findings

    check_all()
    for found in findings():
        message(str(found))
    if findings():
        raise SystemExit(EXIT_FOUND)
