"""The folder of cached files: one limit for all kinds, and nothing of others is touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from landbridge.files.cache_folder import DRIVER_BINARY, PROGRAM, CacheFolder, open_folder


def write(folder: CacheFolder, name: str, nbytes: int) -> None:
    with folder.new_file(name) as file:
        file.write(bytes(nbytes))


def names(folder: CacheFolder) -> set[str]:
    return {entry.path.name for entry in folder.entries()}


def test_programs_and_drivers_binaries_have_one_limit(tmp_path: Path) -> None:
    folder = CacheFolder(tmp_path, 250)
    first, second, third = f"a{PROGRAM}", f"b{DRIVER_BINARY}", f"c{DRIVER_BINARY}"
    for used_s, name in enumerate((first, second)):
        write(folder, name, 100)
        os.utime(tmp_path / name, (used_s, used_s))
    folder.note_use(tmp_path / first)
    write(folder, third, 100)
    assert names(folder) == {first, third}


def test_files_of_others_stay(tmp_path: Path) -> None:
    folder = CacheFolder(tmp_path, 10)
    (tmp_path / "notes.txt").write_bytes(bytes(100))
    write(folder, f"a{PROGRAM}", 5)
    assert names(folder) == {f"a{PROGRAM}"}
    folder.clear()
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_a_folder_that_was_removed_has_no_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDBRIDGE_CACHE", str(tmp_path / "cache"))
    folder = open_folder()
    assert folder is not None
    folder.path.rmdir()
    assert folder.entries() == []
    folder.clear()
    folder.remove(f"a{PROGRAM}")
