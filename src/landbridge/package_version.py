"""Reads the version of an installed package."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_FOLDERS = (".dist-info", ".egg-info", ".egg")
_VERSION = re.compile(rb"^Version: *(\S+) *\r?$", re.MULTILINE)


def package_version(package: str) -> str:
    """Returns the version of ``package``; ``"0"`` where it is not installed, as in a source tree."""
    return package_versions([package])[package]


def package_versions(packages: Iterable[str]) -> dict[str, str]:
    """Returns the version of each of ``packages`` as ``package_version`` does, and lists each folder only once."""
    found = _in_folders(packages)
    return {package: found.get(_plain(package)) or _of_metadata(package) for package in packages}


def _in_folders(packages: Iterable[str]) -> dict[str, str]:
    """Returns the versions that the folders of ``sys.path`` tell, by plain name; only ``importlib.metadata`` (20 ms to
    import) can find the others.
    """
    missing, found = {_plain(package) for package in packages}, dict[str, str]()
    for entry in sys.path:
        if not missing:
            break
        try:
            names = os.listdir(entry or ".")  # noqa: PTH208  iterdir makes a Path of each
        except FileNotFoundError:
            continue
        except OSError:  # an archive on the path
            break
        matches: dict[str, list[str]] = {}
        for each in names:
            if each.lower().endswith(_FOLDERS) and (name := _plain(each.partition("-")[0])) in missing:
                matches.setdefault(name, []).append(each)
        for name, folders in matches.items():
            missing.remove(name)  # the first entry of the path that has it counts
            with suppress(OSError):
                match = _VERSION.search(Path(entry, folders[0], "METADATA").read_bytes().partition(b"\n\n")[0])
                if len(folders) == 1 and match is not None:
                    found[name] = match[1].decode()
    return found


def _of_metadata(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "0"


def _plain(name: str) -> str:
    return re.sub("[-_.]+", "_", name).lower()
