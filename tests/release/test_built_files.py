"""The wheel and the source archive, tried with each Python of this machine in an environment that has nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.release import built_files, programs
from tests.release.built_files import BuiltFiles
from tests.release.check import WITHOUT_COMPILER, check
from tests.selection import pythons
from tests.selection.installed import missing


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuiltFiles:
    return built_files.build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return programs.write(tmp_path_factory.mktemp("programs"))


@pytest.mark.full
@pytest.mark.parametrize("version", pythons.VERSIONS)
def test_installed(version: str, built: BuiltFiles, compiled: Path, tmp_path: Path) -> None:
    python = pythons.find(version)
    if python is None:
        missing(f"a Python {version} that works", "pythons")
    counts = check(python, version, built, compiled, tmp_path)
    assert len(counts) == (1 if version in WITHOUT_COMPILER else 3)
    for each in counts:
        print(f"Python {version}, {each.what}: {each.passed} passed, {each.failed} failed, {each.skipped} skipped")
        assert each.passed and not each.failed, each.output


def test_folders_without_both_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"has nothing; python -m build"):
        built_files.find(tmp_path)
    (tmp_path / "landbridge-1.0-py3-none-any.whl").touch()
    with pytest.raises(FileNotFoundError, match=r"has landbridge-1\.0-py3-none-any\.whl"):
        built_files.find(tmp_path)


def test_what_is_no_python_of_that_version_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names on PATH may be scripts that start another one, or nothing, as those of pyenv."""
    for version, text in (("3.10", "exit 1"), ("3.14t", "echo 3.14")):
        (tmp_path / f"python{version}").write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / f"python{version}").chmod(0o755)
    assert pythons.version_of(tmp_path / "python3.10") is None
    assert pythons.version_of(tmp_path / "nothing") is None
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    found = pythons.find("3.14t")
    assert found is None or found.parents[2] == Path("/opt")
