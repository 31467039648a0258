"""The cache of compiles on disk: the same model, targets and options give the result of an earlier compile.

An entry is an ``.lbx`` file named by a digest of everything that the result depends on (``key``); what it holds besides
the program is in its metadata, and is taken out again. ``landbridge.files.cache_folder`` says where entries are, and
how many bytes of them.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from landbridge.compiler.cache.entry_file import read_entry, write_entry
from landbridge.compiler.cache.key import NotCacheableError, digest_of_file, name_of_entry
from landbridge.compiler.options import CompileOptions
from landbridge.executable.executable import Executable
from landbridge.executable.parts import VDevice
from landbridge.files.cache_folder import PROGRAM, CacheFolder, open_folder
from landbridge.records import record
from landbridge.reporting.warning_notes import NotedWarning, tell_again
from landbridge.targets import Target

__all__ = ["CacheEntry", "look_up"]

#: In the metadata of an entry: warnings of its compile, and digests of the files that the model names.
_REPORTED, _FILES = "cache.told", "cache.files"


@record(frozen=True)
class CacheEntry:
    """The cache location for one compile, and the result that was ``found`` there."""

    found: Executable | None
    _folder: CacheFolder
    _name: str
    _model: Path | None
    _began_ns: int

    def is_there(self) -> bool:
        """Returns whether a result was written; it may be damaged."""
        return (self._folder.path / f"{self._name}{PROGRAM}").exists()

    def read(self) -> Executable | None:
        """Returns the result that was written since, with its warnings issued; None where there is none."""
        found = read_entry(self._folder, self._name)
        return None if found is None else _restored(found, self._model)

    def keep(self, executable: Executable, reported: Sequence[NotedWarning]) -> None:
        """Writes the result of a compile for later calls; does nothing where that is impossible, or files changed in
        between.
        """
        with suppress(NotCacheableError, OSError):
            if any(Path(source).stat().st_ctime_ns > self._began_ns for source in executable.sources):
                return
            notes = {_REPORTED: json.dumps(reported), _FILES: json.dumps(_other_files(executable.sources, self._model))}
            write_entry(self._folder, self._name, replace(executable, metadata={**executable.metadata, **notes}))


def look_up(
    model: object, targets: Sequence[Target], vdevices: Sequence[VDevice], options: CompileOptions
) -> CacheEntry | None:
    """The entry of compiling ``model`` with ``options``; None where results are not kept.

    What its compile warned of is told again. Raises InputError for illegal variables of the environment.
    """
    folder = open_folder()
    if folder is None:
        return None
    began_ns = time.time_ns()
    path = Path(model) if isinstance(model, str | Path) and "\n" not in str(model) else None
    try:
        name = name_of_entry(model if path is None else path, targets, vdevices, options)
    except (NotCacheableError, OSError):
        return None
    found = read_entry(folder, name)
    return CacheEntry(None if found is None else _restored(found, path), folder, name, path, began_ns)


def _restored(retained: Executable, model: Path | None) -> Executable | None:
    """Returns the compiled program without the cache's notes; None where the files that the model names have
    changed.
    """
    metadata = dict(retained.metadata)
    try:
        reported = [NotedWarning(*entry) for entry in json.loads(metadata.pop(_REPORTED))]
        digests: dict[str, str] = json.loads(metadata.pop(_FILES))
        files = [] if model is None else [model, *(model.parent / name for name in digests)]
        if any(digest_of_file(file) != digest for file, digest in zip(files[1:], digests.values(), strict=True)):
            return None
    except (KeyError, TypeError, ValueError, OSError):
        return None
    if model is not None:
        metadata["model"] = model.stem
    for warning in reported:
        tell_again(warning)
    return replace(retained, metadata=metadata, sources=tuple(map(str, files)))


def _other_files(sources: Sequence[str], model: Path | None) -> dict[str, str]:
    """Returns digests of the files besides ``model`` that it was made of, by path from its folder."""
    if model is None:
        if sources:
            raise NotCacheableError("a model without a folder names files")
        return {}
    others = [Path(source) for source in sources if not Path(source).samefile(model)]
    return {os.path.relpath(other, model.parent): digest_of_file(other) for other in others}
