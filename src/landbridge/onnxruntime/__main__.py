"""``python -m landbridge.onnxruntime PROGRAM ARGUMENTS``: runs a program for onnxruntime on Landbridge."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from landbridge.onnxruntime.installed import install_as_onnxruntime

_USAGE = "usage: python -m landbridge.onnxruntime (PROGRAM.py | -m MODULE) [ARGUMENT ...]"


def main() -> None:
    """Runs the program or module that the arguments name, as Python does, with ``import onnxruntime`` giving
    Landbridge.
    """
    arguments = sys.argv[1:]
    is_module = arguments[:1] == ["-m"]
    program = arguments[1:] if is_module else arguments
    if not program or (program[0].startswith("-") and not is_module):
        sys.exit(_USAGE)
    install_as_onnxruntime()
    sys.argv = program
    if is_module:
        runpy.run_module(program[0], run_name="__main__", alter_sys=True)
    elif not Path(program[0]).exists():
        sys.exit(f"{_USAGE}\n{program[0]} is not there")
    else:
        sys.path[0] = str(Path(program[0]).resolve().parent)
        runpy.run_path(program[0], run_name="__main__")


if __name__ == "__main__":
    main()
