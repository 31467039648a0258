"""Suggestions for messages: the known names that are most similar to an unknown one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

#: The least similarity of a suggestion: 'gpu' and 'cpu' are similar (0.67), 'nope' and 'opencl' are not (0.6).
_SIMILARITY = 0.62


def did_you_mean(word: str, known: Iterable[str], most: int = 3, of: Mapping[str, str] | None = None) -> str:
    """Returns ``" (did you mean 'x' or 'y'?)"`` for the ``most`` known names most similar to ``word``, or ``""``;
    ``of`` adds what each belongs to: ``'x' of z``.
    """
    from difflib import get_close_matches  # importing difflib takes longer than importing this module

    close = get_close_matches(word, list(known), n=most, cutoff=_SIMILARITY)
    reported = [repr(name) if of is None else f"{name!r} of {of[name]}" for name in close]
    return f" (did you mean {' or '.join(reported)}?)" if reported else ""


def file_like(file: Path) -> str:
    """Returns a text that lists files in the folder of the missing ``file`` with similar names, or else says which
    folder was searched.
    """
    folder = file.absolute().parent
    if not folder.is_dir():
        return f": there is no folder {str(folder)!r}"
    close = did_you_mean(file.name, (path.name for path in folder.iterdir()))
    return close or f" in {str(folder)!r}"
