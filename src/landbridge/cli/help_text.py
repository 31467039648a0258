"""Lays out the pages that ``--help`` shows: the same on every Python, no wider than the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from landbridge.cli.text_columns import cells, folded, padded, terminal_width

#: Columns of a page at most, as longer lines are hard to read; and of names in it that have no line of their own.
_MOST, _NAMES = 100, 30
#: The option that every command has.
HELP = ("-h, --help", "Show this message and exit.")


def help_text(usage: str, about: str, sections: Mapping[str, Sequence[tuple[str, str]]]) -> str:
    """Returns a page: usage, description, and under each title rows of a name and its help."""
    width = min(terminal_width(), _MOST)
    lines = [f"usage: {usage}"]
    for paragraph in without_marks(about).strip().split("\n\n"):
        lines += ["", *folded(paragraph, width)]
    for title, rows in sections.items():
        if rows:
            lines += ["", f"{title}:", *_rows(rows, width)]
    return "\n".join(lines) + "\n"


def without_marks(text: str) -> str:
    """Returns the ``text`` of a docstring without its markup."""
    return text.replace("`", "")


def _rows(rows: Sequence[tuple[str, str]], width: int) -> list[str]:
    indent = min(_NAMES, max(cells(name) for name, _ in rows)) + 4
    lines = []
    for name, text in rows:
        if cells(name) > indent - 4:
            lines.append(f"  {name}")
            name = ""
        lines += folded(text, width, padded(f"  {name}", indent), " " * indent)
    return lines
