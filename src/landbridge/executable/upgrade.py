"""Files of earlier formats, written again in today's format; nothing is compiled, as an ``.lbx`` holds no model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from landbridge.errors import ExecutableError
from landbridge.executable.executable import SEGMENTS, Executable, file_parts
from landbridge.executable.file_reader import format_version, read_executable
from landbridge.executable.kernel_facts import KERNELS, facts_of, facts_text
from landbridge.executable.segments import segments_of, segments_text
from landbridge.records import record


@record(frozen=True, eq=False)
class Upgrade:
    """What ``upgrade_file`` did: the ``program``, and the format version and bytes of its file before and after.

    ``written``: whether a file was written; False where the file had each byte already.
    """

    program: Executable
    format_before: int
    format_after: int
    bytes_before: int
    bytes_after: int
    written: bool


def upgrade_file(path: Path, output: Path | None = None) -> Upgrade:
    """Write the ``.lbx`` file ``path`` again as ``Executable.save`` writes it now, to ``output`` or in its own place.

    All of the file is verified first. A file that has these bytes already is not written to. A replaced file keeps its
    mode and owner and is replaced by a rename, so that a failure leaves it as it was. Machine code, weights and what
    compiled them stay as they are.

    Raises ExecutableError as ``landbridge.load`` does, for a format too old or too new too; OutputFileError, which is
    an OSError, where the file cannot be written.
    """
    before = format_version(path)
    program = _with_todays_texts(read_executable(path, verify="all"), path)
    parts = file_parts(program)
    target = path if output is None else output
    front, size = parts.front(), path.stat().st_size
    new_size = len(front) + parts.constants_bytes
    # The front holds the SHA-256 of the constants, which were verified to have it.
    is_current = before == parts.version and size == new_size and _begins_with(path, front)
    if is_current and (output is None or (output.exists() and output.samefile(path))):
        return Upgrade(program, before, before, size, size, written=False)
    program.save(target)
    return Upgrade(program, before, parts.version, size, new_size, written=True)


def _with_todays_texts(program: Executable, path: Path) -> Executable:
    """Returns ``program`` with the metadata that are texts of records written again, with all fields that these have
    now.
    """
    try:
        texts = {}
        if SEGMENTS in program.metadata:
            texts[SEGMENTS] = segments_text(segments_of(program))
        if KERNELS in program.metadata:
            texts[KERNELS] = facts_text(facts_of(program))
    except ExecutableError as error:
        raise ExecutableError(f"{path}: {error}") from None
    return replace(program, metadata={**program.metadata, **texts})


def _begins_with(path: Path, content: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(content)) == content
