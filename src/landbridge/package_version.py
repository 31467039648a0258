"""The version of a package as it is installed here."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def package_version(package: str) -> str:
    """The version of ``package``; ``"0"`` where it is not installed, as in a source tree."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "0"
