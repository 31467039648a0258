"""load(): reads an Executable from its file without the compiler's packages."""

from __future__ import annotations

import os
from pathlib import Path

from landbridge.errors import InputError
from landbridge.executable.executable import Executable
from landbridge.executable.file_reader import Verify, read_executable
from landbridge.process.exhaustion import reports_exhaustion


@reports_exhaustion("a program was loaded")
def load(path: str | Path, *, verify: Verify = "auto", mapped: bool = True) -> Executable:
    """Returns the Executable in the ``.lbx`` file ``path``; its constants stay in the file, mapped read-only.

    An ``.lbx`` executes code: load only what you trust. Its digest, of all but the constants, is always checked.
    ``verify`` says how constants are checked:

    - ``"auto"``: as ``"bind"`` up to 16 MiB of constants, as False above, where reading them once would be felt.
    - ``"bind"``: a checksum that is as fast as memory, when the first Session is made.
    - ``"all"`` or True: their SHA-256, now.
    - False: nothing.

    With each of them, the next Session takes the checksum again if the file was written to since.

    A mapped file that is cut ends the process, and one that is written to changes the constants under running
    Sessions: replace it by renaming a new one over it, as ``Executable.save`` does. Making a Session finds both; during
    a run neither can be seen. ``mapped=False`` reads the constants into memory, and the file is free.

    Raises ExecutableError when the file is no ``.lbx``, truncated, corrupt or of another version; of these,
    MissingFileError, a FileNotFoundError too, when it is not there, and UnreadableFileError, an OSError too, when it
    cannot be opened. Whether this machine can run it is checked by ``Session``.
    """
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"load takes the path of an .lbx file, not {type(path).__name__}")
    return read_executable(Path(path), verify=verify, mapped=mapped)
