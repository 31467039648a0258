"""Makes text of others, such as names of tensors and nodes, safe to show: no character of it controls a terminal."""

from __future__ import annotations


def printable(text: str, keep: str = "") -> str:
    r"""Returns ``text`` with an escape such as ``\x1b`` for each invisible character, except those in ``keep``.

    Invisible are the controls of terminals (C0 and C1), line ends, marks of the direction of text, all blanks but the
    usual one, and halves of surrogate pairs.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode("ascii") for c in text)
