"""Lists below the text of a first error what was tried after it: the first one has the cause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from landbridge.errors import CompileError, InputError

_HEADING = "Tried after that, without success:"
#: The most attempts that an error lists, and the most characters of the reason of each.
_MOST_LISTED, _MOST_SHOWN = 4, 120


def add_tried(error: CompileError | InputError, tried: Iterable[tuple[str, BaseException]]) -> None:
    """Add lines to the text of ``error``: what was tried after it, and the first line of why that failed, for each.

    An attempt that failed for the same reason as ``error`` says so. Lines that it has already are not repeated.
    """
    text, _, listed = str(error).partition(f"\n{_HEADING}\n")
    cause = _first_line(error)
    reasons = [f"  - {what}: {'the same' if _first_line(why) == cause else _first_line(why)}" for what, why in tried]
    lines = list(dict.fromkeys([*listed.splitlines(), *reasons]))
    if not lines:
        return
    more = [f"  - and {len(lines) - _MOST_LISTED} more"] if len(lines) > _MOST_LISTED else []
    error.args = "\n".join([text, _HEADING, *lines[:_MOST_LISTED], *more]), *error.args[1:]


@contextmanager
def tried_after(first: CompileError | InputError, what: str) -> Iterator[None]:
    """Raises ``first``, with ``what`` as tried after it, where the block fails to compile the model."""
    try:
        yield
    except (CompileError, InputError) as error:
        add_tried(first, [(what, error)])
        raise first from first.__cause__


def _first_line(error: BaseException) -> str:
    text = str(error).partition("\n")[0]
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
