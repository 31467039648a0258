"""The command line: ``landbridge COMMAND``, one module for each command."""

from __future__ import annotations

import json
import os
import sys
from importlib.util import find_spec

#: Where this is set, a fault of Landbridge ends in its traceback.
_TRACEBACK = "LANDBRIDGE_TRACEBACK"


#: What the commands need, beside what a command says for itself.
_PACKAGES = ("numpy", "typer", "rich")


def main() -> None:
    """Run the command that ``sys.argv`` names and exit with its code."""
    _check_packages()
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


def _check_packages() -> None:
    """Exit where packages of the commands are missing, as where pip was told to install none, saying so."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if not missing:
        return
    text = (
        f"the commands need {', '.join(missing)}, which this install lacks; add what is missing with: "
        f"pip install {' '.join(missing)}. Python programs that load and run need numpy alone"
    )
    if "--json" in sys.argv:
        print(json.dumps({"error": {"kind": "ModuleNotFoundError", "message": text, "exit_code": 1}}))
    raise SystemExit(f"error: {text}")
