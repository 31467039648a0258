"""load(): an Executable from its file, by the parts that need no compiler."""

from __future__ import annotations

from pathlib import Path

from landbridge.executable.executable import Executable
from landbridge.executable.file_format import read_executable


def load(path: str | Path, *, verify: bool = False) -> Executable:
    """The Executable in the ``.lbx`` file ``path``; its constants stay in the file, mapped read-only.

    ``verify`` also reads every constant and checks its digest. An ``.lbx`` executes code: load only what you
    trust. Raises ExecutableError when the file is no ``.lbx``, truncated, corrupt or of another version; OSError
    when it cannot be opened. Whether this machine can run it is checked by ``Session``.
    """
    return read_executable(Path(path), verify=verify)
