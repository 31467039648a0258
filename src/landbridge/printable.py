"""Text of others, names of tensors and nodes for one, as it can be shown: nothing in it acts on a terminal."""

from __future__ import annotations


def printable(text: str, keep: str = "") -> str:
    r"""Return ``text`` with an escape, as ``\x1b``, for each character that is none to see, but for those of ``keep``.

    These are the controls of terminals (C0 and C1), the ends of lines, what changes the direction of text, all blanks
    but the usual one, and halves of surrogate pairs.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode("ascii") for c in text)
