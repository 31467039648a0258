"""Lays out text in columns of a terminal, where some characters take two."""

from __future__ import annotations

import os
import sys
from unicodedata import combining, east_asian_width

#: The width of output that is not a terminal, and of a terminal of unknown width.
USUAL = 80


def terminal_width(otherwise: int = USUAL) -> int:
    """Returns ``COLUMNS``, else the columns of the terminal that standard output is, else ``otherwise``."""
    declared = os.environ.get("COLUMNS", "")
    if declared.isdecimal() and int(declared):
        return int(declared)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or USUAL
    except (OSError, ValueError, AttributeError):  # no terminal, a closed stream, or a test's object
        return otherwise


def cells(text: str) -> int:
    """Returns the columns that ``text`` takes."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def padded(text: str, width: int) -> str:
    """Returns ``text`` padded with blanks to ``width`` columns."""
    return text + " " * (width - cells(text))


def folded(text: str, width: int, first: str = "", later: str = "") -> list[str]:
    """Returns ``text`` in lines of at most ``width`` columns, broken at blanks, or within a word that is longer than a
    line.

    The first line begins with ``first``, the others with ``later``.
    """
    lines = [first]
    empty = True  # the last line, except its prefix
    for word in text.split():
        if not empty and cells(lines[-1]) + 1 + cells(word) <= width:
            lines[-1] += f" {word}"
            continue
        if not empty:
            lines.append(later)
        empty = False
        if cells(lines[-1]) + cells(word) <= width:
            lines[-1] += word
            continue
        for char in word:
            if cells(lines[-1]) + cells(char) > width and lines[-1] not in (first, later):
                lines.append(later)
            lines[-1] += char
    return lines
