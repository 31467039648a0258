"""The programs of the pages about boards: which part is for the laptop, and which for the board."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_PAGES = Path(__file__).parents[2] / "docs" / "boards"
_BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: What is for the laptop ends with it.
_SAVED = '.save("cls.lbx")\n'


@dataclass(frozen=True)
class PagePrograms:
    """``laptop`` and ``board`` are the page's Python, in order; ``shown``: the lines that the page says it prints."""

    laptop: str
    board: str
    shown: tuple[str, ...]


def programs_of(page: str) -> PagePrograms:
    """The programs of ``docs/boards/PAGE.md``."""
    found = _BLOCK.findall((_PAGES / f"{page}.md").read_text())
    python = [text for kind, text in found if kind == "python"]
    (laptop,) = (text for text in python if text.endswith(_SAVED))
    shown = [line for kind, text in found if kind == "text" for line in text.splitlines()]
    return PagePrograms(laptop, "\n".join(text for text in python if text != laptop), tuple(shown))
