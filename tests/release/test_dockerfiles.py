"""The Dockerfiles: what they name exists, and their commands are shell."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.release.built_files import ROOT

FILES = sorted((ROOT / "docker").glob("*.Dockerfile"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: The Python of the image that all are made of.
DEBIAN = {"bookworm": "3.11"}


def instructions(file: Path) -> list[tuple[str, str]]:
    """Each instruction with its words, lines that go on joined."""
    lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [(name, words) for name, _, words in (line.partition(" ") for line in joined.splitlines() if line)]


def words_of(file: Path, instruction: str) -> list[str]:
    return [words for name, words in instructions(file) if name == instruction]


def test_there_are_two() -> None:
    assert [file.name for file in FILES] == ["compiler.Dockerfile", "light.Dockerfile"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_commands_are_shell(file: Path) -> None:
    commands = words_of(file, "RUN")
    assert len(commands) >= 3
    for command in commands:
        done = subprocess.run(["sh", "-n", "-c", command], capture_output=True, text=True)
        assert done.returncode == 0, (command, done.stderr)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_extras_exist_and_python_is_one_that_has_them(file: Path) -> None:
    named = [extra for words in words_of(file, "RUN") for extra in re.findall(r"\.whl\)?\[([a-z,]+)\]", words)]
    assert named == (["compile"] if file.stem == "compiler" else [])
    assert set(named) <= set(PROJECT["optional-dependencies"])
    releases = {release for words in words_of(file, "FROM") for release in re.findall(r"^debian:([a-z]+)-slim", words)}
    (python,) = {DEBIAN[release] for release in releases}
    assert f"Programming Language :: Python :: {python}" in PROJECT["classifiers"]
    used = set(re.findall(r"python(3\.\d+)", file.read_text()))
    assert used == ({python} if file.stem == "light" else set())


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_is_copied_is_what_a_build_makes(file: Path) -> None:
    """Of the repository nothing but the wheel; the rest comes from the stage before."""
    outside = [words for words in words_of(file, "COPY") if not words.startswith("--from=build ")]
    assert outside == ["dist/*.whl /dist/"]
    assert (ROOT / ".dockerignore").read_text().splitlines()[-2:] == ["*", "!dist/*.whl"]
    stages = [words.partition(" AS ")[2] for words in words_of(file, "FROM")]
    assert stages == ["build", ""]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_images_run_the_commands_as_nobody_in_the_folder_that_docs_name(file: Path) -> None:
    assert words_of(file, "USER") == ["65532:65532"] and words_of(file, "WORKDIR") == ["/work"]
    (entry,) = words_of(file, "ENTRYPOINT")
    assert entry in ('["landbridge"]', '["python3", "-m", "landbridge"]')
    page = (ROOT / "docs" / "containers.md").read_text()
    (line,) = re.findall(r"^#     python -m build && (docker build .*)$", file.read_text(), re.MULTILINE)
    assert line in page and f"docker/{file.name}" in line
