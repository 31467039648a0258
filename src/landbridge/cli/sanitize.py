"""``--sanitize``: every device of the process is sanitized, and what was found ends the command."""

from __future__ import annotations

import os

from landbridge.cli.output import message

EXIT_FOUND = 3


def sanitize_all() -> None:
    """Sanitize every device that is asked for from now on; call it before the first one is."""
    from landbridge.sanitizing import SANITIZE_VARIABLE

    os.environ[SANITIZE_VARIABLE] = "1"


def exit_on_findings() -> None:
    """Look at all memory once more; print what was found, and exit with 3 if anything was."""
    from landbridge.sanitizer import check_all, findings

    check_all()
    for found in findings():
        message(str(found))
    if findings():
        raise SystemExit(EXIT_FOUND)
