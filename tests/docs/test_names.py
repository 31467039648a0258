"""Every name of the package that a page mentions can be imported, for a plugin's author copies it from there."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: Strings of that form that are no names of Python, and what they are.
OTHERS = {
    "landbridge.allow_links": "an entry of SessionOptions",
    "landbridge.kept_programs": "an entry of SessionOptions",
    "landbridge.optimize": "an entry of SessionOptions",
    "landbridge.codegens": "a group of entry points",
    "landbridge.LengthWithin": "an operator of the IR's own domain",
}
#: Packages of others that a module needs and these tests may lack: that the module is there is enough.
OPTIONAL = {"ray"}


def names(text: str) -> list[str]:
    """Returns the dotted names of the package in ``text``, without those of ``OTHERS``."""
    found = set(re.findall(r"\blandbridge(?:\.[A-Za-z_]\w*)+", text))
    return sorted(found - OTHERS.keys())


def resolved(name: str) -> Any:
    """Returns what ``name`` stands for; raises ImportError or AttributeError where there is nothing."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            value = import_module(".".join(parts[:end]))
        except ModuleNotFoundError as error:
            if error.name is None or not name.startswith(error.name):
                raise
            continue
        for attribute in parts[end:]:
            value = getattr(value, attribute)
        return value
    raise ImportError(name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_name_can_be_imported(page: Path) -> None:
    for name in names(page.read_text()):
        try:
            resolved(name)
        except ModuleNotFoundError as error:
            if error.name not in OPTIONAL:
                raise


@pytest.mark.parametrize("name", ["landbridge.target", "landbridge.device.stream_of", "landbridge.Sesion"])
def test_a_name_that_is_gone_is_found(name: str) -> None:
    with pytest.raises((ImportError, AttributeError)):
        resolved(names(f"import `{name}`")[0])
