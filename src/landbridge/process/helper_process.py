"""Commands and environments of helper processes, which import what this process imports and never files of the user.

Python puts the current folder, or the script's, first on the path of what it imports; a file ``queue.py`` there would
be imported by a helper. Empty entries of PATH and similar variables mean the current folder too.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

#: What the helper does first: this process's path, and the very package that this process has.
_PRELUDE = """
import json, sys
sys.path[:], package_file = json.loads(sys.argv.pop(1))
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("landbridge", package_file)
module = sys.modules["landbridge"] = module_from_spec(spec)
spec.loader.exec_module(module)
"""
#: Variables in which an empty or relative entry is looked up in the current folder.
_PATHS = ("PATH", "CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH", "LD_LIBRARY_PATH")


def has_interpreter() -> bool:
    """Returns whether ``python_command`` starts Python with this package's files.

    In a frozen or embedding program ``sys.executable`` is that program, or nothing; in an archive there are no files.
    """
    program = Path(sys.executable or "").name.lower()
    return (
        program.startswith(("python", "pypy")) and not getattr(sys, "frozen", False) and Path(_package_file()).is_file()
    )


def python_command(code: str, arguments: Sequence[str] = ()) -> list[str]:
    """Returns the command that runs ``code`` with ``arguments`` (from ``sys.argv[1]`` on) in another Python like this
    one.

    It has to be started with ``environment()``.
    """
    # -P puts nothing before the standard library; the entries of PYTHONPATH are in sys.path, which is passed on. What
    # this process ignores (-E, -s, both by -I) its helpers ignore as well.
    ignored = (("-E", sys.flags.ignore_environment), ("-s", sys.flags.no_user_site))
    options = [option for option, is_set in ignored if is_set]
    return [
        sys.executable,
        "-P",
        *options,
        "-c",
        _PRELUDE + code,
        json.dumps([_module_path(), _package_file()]),
        *arguments,
    ]


def environment() -> dict[str, str]:
    """Returns the environment of a helper: that of this process without entries that mean the current folder."""
    variables = dict(os.environ)
    variables.pop("PYTHONPATH", None)
    for name in _PATHS:
        if retained := _absolute(variables.pop(name, "")):
            variables[name] = retained
    return variables


def find_program(name: str) -> str | None:
    """Returns the path of program ``name``, found as the shell does, but never in a folder relative to the current one;
    None where there is none.

    A name with a slash is a path already.
    """
    import shutil  # takes 2 ms, and most processes look for no program

    found = shutil.which(name, path=_absolute(os.environ.get("PATH", os.defpath)))
    return found and str(Path(found).absolute())


def _absolute(folders: str) -> str:
    return os.pathsep.join(folder for folder in folders.split(os.pathsep) if folder.startswith(os.sep))


def _package_file() -> str:
    return str(Path(__file__).absolute().parents[1] / "__init__.py")


def _module_path() -> list[str]:
    """Returns ``sys.path`` with the folders that Python added for the user's files moved to the end, whatever their
    names.
    """
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    doubtful = {os.path.realpath(folder) for folder in (".", Path(script).parent if script else ".")}
    path = [str(Path(entry).absolute()) for entry in sys.path if isinstance(entry, str) and entry]
    return sorted(path, key=lambda entry: os.path.realpath(entry) in doubtful)
