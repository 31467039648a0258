"""Versions are those that importlib.metadata finds, mostly without it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib.metadata import distributions, version
from pathlib import Path

import pytest

from landbridge.package_version import package_version


def test_all_that_is_installed() -> None:
    names = {each.name for each in distributions()}
    assert {name: package_version(name) for name in names} == {name: version(name) for name in names}
    assert package_version("nothing-of-this-name") == "0"


METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nVersion: of the text\n"


@pytest.mark.parametrize(
    ("folders", "expected"),
    [
        (["some_package-1.2.dist-info"], "1.2"),
        (["Some.Package-1.2.dist-info"], "1.2"),
        (["some_package_more-1.2.dist-info"], "0"),
        (["some_package-1.2.egg-info"], "1.2"),
    ],
)
def test_names_are_compared_as_installers_do(
    folders: list[str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in folders:
        (tmp_path / folder).mkdir()
        file = "PKG-INFO" if folder.endswith(".egg-info") else "METADATA"
        (tmp_path / folder / file).write_text(METADATA.format(name="some-package", version="1.2"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "not there")
    assert package_version("some-package") == expected


def test_the_first_on_the_path_counts_be_it_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("some_package-2.0.dist-info/METADATA", METADATA.format(name="some-package", version="2.0"))
    (tmp_path / "some_package-1.0.dist-info").mkdir()
    (tmp_path / "some_package-1.0.dist-info" / "METADATA").write_text(
        METADATA.format(name="some-package", version="1.0")
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path / "all.zip"), str(tmp_path), *sys.path])
    assert package_version("some-package") == "2.0"
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "all.zip"), *sys.path])
    assert package_version("some-package") == "1.0"


def test_what_is_installed_in_a_folder_takes_no_import() -> None:
    code = "import sys; from landbridge.package_version import package_version; print(package_version('numpy'));"
    code += "print('importlib.metadata' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [version("numpy"), "False"]
