"""The error for an object that is given where a compiled program is needed."""

from __future__ import annotations

import os

from landbridge.errors import InputError


def no_program(given: object) -> InputError:
    """Returns the error for ``given``, which is no Executable, that says how to make one."""
    if isinstance(given, str | os.PathLike):
        path = os.fspath(given)
        call = "load" if str(path).endswith(".lbx") else "compile"
        return InputError(f"a Session runs a compiled program, not a path; make one: lb.{call}({str(path)!r})")
    subject = type(given).__name__
    if subject == "ModelProto":
        return InputError("a Session runs a compiled program, not an ONNX model; make one: lb.compile(model)")
    return InputError(
        f"a Session runs a compiled program, an Executable, not {subject}; make one with lb.compile(model), or "
        "lb.load(path) of a file that was saved"
    )
