"""The command line ``landbridge COMMAND``, with one module for each command."""

from __future__ import annotations

import io
import json
import os
import sys
from importlib.util import find_spec
from typing import NoReturn

#: Where this is set, a fault of Landbridge ends in its traceback.
_TRACEBACK = "LANDBRIDGE_TRACEBACK"
#: Set by the shell functions of `register-python-argcomplete`, which request completions.
_COMPLETE = "_ARGCOMPLETE"
#: Commands that write a file and end.
_BRIEF = ("compile", "export", "inspect", "opt", "plan")


def main() -> NoReturn:
    """Runs the command that ``sys.argv`` names and exits with its code."""
    if _COMPLETE in os.environ:
        from landbridge.cli.completion import complete

        complete()
    _open_streams()
    _check_numpy()
    if sys.argv[1:2] and sys.argv[1] in _BRIEF:
        from landbridge.process.garbage import never_collect

        never_collect()
    from landbridge.cli.app import EXIT_ERROR, app
    from landbridge.cli.output import error, tell_warnings

    tell_warnings()
    try:
        code = app(sys.argv[1:])
    except Exception as fault:
        if os.environ.get(_TRACEBACK):
            raise
        reason = " ".join(f"{type(fault).__name__}: {fault}".split())
        error(f"a fault of landbridge, {reason}; please report it with what {_TRACEBACK}=1 makes it print")
        raise SystemExit(EXIT_ERROR) from fault
    raise SystemExit(code)


def _open_streams() -> None:
    """Opens standard output and error where they are closed, and makes them escape characters that they cannot
    encode.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, io.StringIO())  # nobody reads this
        elif stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def _check_numpy() -> None:
    """Exits with a message where numpy is missing, as when pip installed no dependencies."""
    if find_spec("numpy") is not None:
        return
    text = "landbridge needs numpy, which this install lacks; add it with: pip install numpy"
    if "--json" in sys.argv:
        print(json.dumps({"error": {"kind": "ModuleNotFoundError", "message": text, "exit_code": 1}}))
    raise SystemExit(f"error: {text}")
