"""The command line: ``landbridge COMMAND``, one module for each command."""

from __future__ import annotations

import os

#: Where this is set, a fault of Landbridge ends in its traceback.
_TRACEBACK = "LANDBRIDGE_TRACEBACK"


def main() -> None:
    """Run the command that ``sys.argv`` names and exit with its code."""
    from landbridge.cli.app import EXIT_ERROR, app
    from landbridge.cli.output import error, tell_warnings

    tell_warnings()
    try:
        app()
    except Exception as fault:
        if os.environ.get(_TRACEBACK):
            raise
        reason = " ".join(f"{type(fault).__name__}: {fault}".split())
        error(f"a fault of landbridge, {reason}; please report it with what {_TRACEBACK}=1 makes it print")
        raise SystemExit(EXIT_ERROR) from fault
