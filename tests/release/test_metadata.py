"""What a package index shows of the built files, and what is in them."""

from __future__ import annotations

import email
import importlib.util
import re
import subprocess
import sys
import zipfile
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from tests.release.built_files import ROOT, BuiltFiles, build
from tests.selection.pythons import VERSIONS


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuiltFiles:
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def metadata(built: BuiltFiles) -> Message:
    with zipfile.ZipFile(built.wheel) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(wheel.read(name))


def hook() -> Any:
    specified = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert specified is not None and specified.loader is not None
    module = importlib.util.module_from_spec(specified)
    specified.loader.exec_module(module)
    return module


def links(text: str) -> list[str]:
    """Targets of links in Markdown, code aside."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"\]\(([^)]+)\)", prose)


@pytest.mark.full
def test_the_description_renders(built: BuiltFiles) -> None:
    command = [sys.executable, "-P", "-m", "twine", "check", "--strict", str(built.wheel), str(built.source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_description_is_readme_with_links_that_lead_somewhere(metadata: Message) -> None:
    readme = (ROOT / "README.md").read_text()
    assert links(readme), "nothing is tried"
    text = metadata.get_payload()
    assert isinstance(text, str) and "[" in text
    assert text.split()[:20] == readme.split()[:20]
    assert [target for target in links(text) if not re.match(r"https?://|#", target)] == []
    assert re.findall(r"^```.*?^```$", text, re.MULTILINE | re.DOTALL) == re.findall(
        r"^```.*?^```$", readme, re.MULTILINE | re.DOTALL
    )


@pytest.mark.parametrize(
    ("repository", "version", "expected"),
    [
        ("", "1.0", "*A dog*, a page, [a site](https://there.example), [below](#below)"),
        (
            "https://forge.example/we/it/",
            "1.0",
            "![A dog](https://forge.example/we/it/raw/v1.0/docs/dog.jpg), [a page](https://forge.example/we/it/blob/v1.0"
            "/docs/a.md#part), [a site](https://there.example), [below](#below)",
        ),
        (
            "https://forge.example/we/it",
            "1.0.dev3+g12",
            "![A dog](https://forge.example/we/it/raw/HEAD/docs/dog.jpg), [a page](https://forge.example/we/it/blob/HEAD"
            "/docs/a.md#part), [a site](https://there.example), [below](#below)",
        ),
    ],
)
def test_paths_become_links_into_the_repository(repository: str, version: str, expected: str) -> None:
    code = "\n```python\nx[1](docs/a.md)\n```\n"
    text = "![A dog](docs/dog.jpg), [a page](docs/a.md#part), [a site](https://there.example), [below](#below)"
    assert hook().with_links(text + code, repository, version) == expected + code


def test_fields(metadata: Message, built: BuiltFiles) -> None:
    assert metadata["Name"] == "landbridge" and metadata["Version"] == built.version
    assert metadata["License-Expression"] == "Apache-2.0" and metadata["Requires-Python"] == ">=3.10"
    assert metadata["Description-Content-Type"] == "text/markdown" and len(metadata["Summary"]) <= 512
    needed = [each for each in metadata.get_all("Requires-Dist", []) if "extra ==" not in each]
    assert needed == ["numpy>=1.21"]
    addresses = [each.partition(", ")[2] for each in metadata.get_all("Project-URL", [])]
    assert all(address.startswith("https://") for address in addresses)
    named = [each.rpartition(" :: ")[2] for each in metadata.get_all("Classifier", [])]
    claimed = [each for each in named if re.fullmatch(r"3\.\d+", each)]
    assert claimed == [version for version in VERSIONS if not version.endswith("t")], "claimed, and not tried"
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert f"uv python install {' '.join(VERSIONS)}\n" in workflow


def tracked(folder: str = ".") -> set[str]:
    """Files of the repository, those that are new and not ignored among them."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard", folder]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("not a clone: what is tracked is not known")
    return {name for name in done.stdout.split("\0") if name and (ROOT / name).exists()}


def test_the_source_archive_is_the_repository(built: BuiltFiles, tmp_path: Path) -> None:
    folder = built.unpack_source(tmp_path)
    archived = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
    assert archived - {"PKG-INFO"} == tracked()
    assert all((folder / name).read_bytes() == (ROOT / name).read_bytes() for name in tracked())


def test_the_wheel_is_the_package(built: BuiltFiles) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        assert {f"src/{name}" for name in names} == tracked("src")
        assert all(wheel.read(name) == (ROOT / "src" / name).read_bytes() for name in names)
