"""The file of a cached compile: an ``.lbx`` in the folder of cached files, verified when it is read."""

from __future__ import annotations

from landbridge.errors import ExecutableError
from landbridge.executable.executable import Executable, file_parts
from landbridge.executable.file_reader import read_executable
from landbridge.files.cache_folder import PROGRAM, CacheFolder


def read_entry(folder: CacheFolder, name: str) -> Executable | None:
    """Returns the entry ``name`` of ``folder`` with its constants mapped; None where there is no intact one."""
    file = folder.path / f"{name}{PROGRAM}"
    try:
        found = read_executable(file, verify="all")
        folder.note_use(file)
    except ExecutableError:  # of another version, or damaged on the disk
        folder.remove(file.name)
        return None
    except OSError:
        return None
    return found


def write_entry(folder: CacheFolder, name: str, executable: Executable) -> None:
    """Writes ``executable`` as entry ``name`` of ``folder``, and removes files beyond its limit; raises OSError."""
    with folder.new_file(f"{name}{PROGRAM}") as file:
        file_parts(executable).write(file, lasting=False)
