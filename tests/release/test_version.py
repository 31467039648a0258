"""The version of a build, by what its folder knows of tags."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
#: What a build of a version reads.
FILES = (
    ".gitignore",
    *("pyproject.toml", "hatch_build.py", ".gitattributes", ".git_archival.txt"),
    *("README.md", "CHANGELOG.md", "LICENSE"),
)
#: The version that is worked on, as in CHANGELOG.md.
NEXT = PROJECT["tool"]["hatch"]["version"]["fallback-version"].removesuffix(".dev0")


class Clone:
    """A repository of this project's build files alone, with two commits."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        for name in FILES:
            shutil.copy(ROOT / name, folder)
        self.git("add", "--all")
        self.commit()
        self.commit()

    def git(self, *words: str) -> str:
        who = ("-c", "user.name=Landbridge", "-c", "user.email=landbridge@example.org", "-c", "tag.gpgSign=false")
        command = ["git", "-C", str(self.folder), *who, "-c", "commit.gpgSign=false", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=plain_environment()).stdout

    def commit(self) -> None:
        self.git("commit", "--quiet", "--allow-empty", "--message=change")


def plain_environment(**more: str) -> dict[str, str]:
    """This environment without what another repository or a user says of versions."""
    out = ("GIT_", "SETUPTOOLS_SCM_", "VCS_VERSIONING_")
    return {**{name: value for name, value in os.environ.items() if not name.startswith(out)}, **more}


def version(folder: Path, **environment: str) -> str:
    command = [sys.executable, "-P", "-m", "hatchling", "version"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=plain_environment(**environment))
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path / "clone")


def test_the_fallback_is_the_version_that_is_worked_on() -> None:
    """A step of docs/release.md, which would be forgotten."""
    (title, *_) = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert title.split(",")[0] == NEXT


def test_without_a_tag(clone: Clone, tmp_path: Path) -> None:
    assert re.fullmatch(rf"{re.escape(NEXT)}\.dev2\+g[0-9a-f]+", version(clone.folder))
    subprocess.run(
        ["git", "clone", "--quiet", "--depth=1", clone.folder.as_uri(), tmp_path / "shallow"],
        check=True,
        env=plain_environment(),
    )
    assert re.fullmatch(rf"{re.escape(NEXT)}\.dev1\+g[0-9a-f]+", version(tmp_path / "shallow"))


def test_of_a_tag_and_past_it(clone: Clone, tmp_path: Path) -> None:
    clone.git("tag", "v7.1.0")
    clone.git("tag", "an-event-2")  # no version
    assert version(clone.folder) == "7.1.0"
    subprocess.run(
        ["git", "clone", "--quiet", "--depth=1", clone.folder.as_uri(), tmp_path / "shallow"],
        check=True,
        env=plain_environment(),
    )
    assert version(tmp_path / "shallow") == "7.1.0"
    clone.commit()
    clone.git("tag", "an-event-3")
    assert re.fullmatch(r"7\.2\.0\.dev1\+g[0-9a-f]+", version(clone.folder))
    clone.git("checkout", "--quiet", "-b", "v7.1.x")
    assert re.fullmatch(r"7\.1\.1\.dev1\+g[0-9a-f]+", version(clone.folder))
    (clone.folder / "README.md").write_text("changed")
    assert re.fullmatch(r"7\.1\.1\.dev1\+g[0-9a-f]+\.d[0-9]{8}", version(clone.folder))


@pytest.mark.parametrize(("tag", "expected"), [(None, f"{NEXT}.dev0"), ("v7.1.0", "7.1.0")])
def test_of_an_archive(clone: Clone, tmp_path: Path, tag: str | None, expected: str) -> None:
    """As forges offer of a tag or commit."""
    if tag is not None:
        clone.git("tag", "--annotate", "--message=x", tag)
    clone.git("archive", "--output", str(tmp_path / "archive.tar"), "HEAD")
    shutil.unpack_archive(tmp_path / "archive.tar", tmp_path / "archive")
    assert version(tmp_path / "archive") == expected


def test_where_git_is_no_help(clone: Clone, tmp_path: Path) -> None:
    """It is not installed, as in small images; or the folder was copied without it."""
    clone.git("tag", "v7.1.0")
    (tmp_path / "programs").mkdir()
    assert version(clone.folder, PATH=str(tmp_path / "programs")) == f"{NEXT}.dev0"
    shutil.rmtree(clone.folder / ".git")
    assert version(clone.folder) == f"{NEXT}.dev0"


def test_an_editable_install_and_a_source_archive(clone: Clone, tmp_path: Path) -> None:
    """Of a clone without tags, as CI and developers have it."""
    package = clone.folder / "src" / "landbridge"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    clone.git("add", "--all")
    clone.commit()
    expected = version(clone.folder)
    pip = [sys.executable, "-P", "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    command = [*pip, "--target", str(tmp_path / "packages"), "-e", str(clone.folder)]
    subprocess.run(command, check=True, env=plain_environment())
    (installed,) = (tmp_path / "packages").glob("landbridge-*.dist-info")
    assert f"\nVersion: {expected}\n" in (installed / "METADATA").read_text()
    assert clone.git("status", "--porcelain") == "", "a build wrote into the clone"
    build = [sys.executable, "-P", "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path / "dist")]
    subprocess.run(build, check=True, cwd=clone.folder, env=plain_environment(), capture_output=True)
    (source,) = (tmp_path / "dist").glob("*.tar.gz")
    shutil.unpack_archive(source, tmp_path / "unpacked")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    assert version(unpacked) == expected


def test_what_a_build_needs_is_installed_with_the_tests() -> None:
    """Tests build without a folder of their own, which would be downloaded for each."""
    needed = set(PROJECT["build-system"]["requires"])
    assert needed and needed <= set(PROJECT["project"]["optional-dependencies"]["test"])
