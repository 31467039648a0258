"""The known names nearest to one that is not known, for messages."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``" (did you mean 'x' or 'y'?)"`` for the known names nearest to ``word``, or nothing."""
    from difflib import get_close_matches  # takes longer to import than all of this

    near = get_close_matches(word, list(known), n=3)
    return f" (did you mean {' or '.join(repr(name) for name in near)}?)" if near else ""
