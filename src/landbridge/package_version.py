"""Reads the version of an installed package."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from pathlib import Path

_FOLDERS = (".dist-info", ".egg-info", ".egg")
_VERSION = re.compile(rb"^Version: *(\S+) *\r?$", re.MULTILINE)


def package_version(package: str) -> str:
    """Returns the version of ``package``; ``"0"`` where it is not installed, as in a source tree."""
    found = _in_folders(package)
    return _of_metadata(package) if found is None else found


def _in_folders(package: str) -> str | None:
    """Returns the version from the folders of ``sys.path``; None where only ``importlib.metadata`` (20 ms to import)
    can find it.
    """
    name = _plain(package)
    for entry in sys.path:
        try:
            names = [each.name for each in Path(entry).iterdir()]
        except FileNotFoundError:
            continue
        except OSError:  # an archive on the path
            return None
        matches = [each for each in names if each.lower().endswith(_FOLDERS) and _plain(each.partition("-")[0]) == name]
        if matches:
            with suppress(OSError):
                found = _VERSION.search(Path(entry, matches[0], "METADATA").read_bytes().partition(b"\n\n")[0])
                if len(matches) == 1 and found is not None:
                    return found[1].decode()
            return None
    return None


def _of_metadata(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "0"


def _plain(name: str) -> str:
    return re.sub("[-_.]+", "_", name).lower()
