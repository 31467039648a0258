"""Ranges of the dimensions that a file leaves open, where nobody states them: those that the model can be run in."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from landbridge.errors import CompileError, InputError, ShapeError, UndecidedSizeError
from landbridge.ir.module import IRModule
from landbridge.sizes.question import Question
from landbridge.sizes.settle import settled
from landbridge.sizes.size import Extent, dimensions_of

#: Ranges that are tried.
_MOST_TRIED = 16


def in_open_ranges(build: Callable[[Mapping[str, Extent]], IRModule], stated: Mapping[str, Extent]) -> IRModule:
    """What ``build`` makes of dimensions by name: of ``stated``, which stay, and of ranges of others.

    A question that these leave open narrows one of them to the widest range in which it has an answer, to the next
    one where shapes contradict each other in that. Where no range is found, raises what the widest ones ended in.
    """
    fixed = dimensions_of(stated.values())
    ended: CompileError | InputError | None = None
    pending: list[dict[str, Extent]] = [{}]
    for tried in range(1, _MOST_TRIED + 1):
        narrowed = pending.pop()
        try:
            return build({**narrowed, **stated})
        except (CompileError, InputError) as error:
            question = _question(error)
            ranges = [] if question is None else settled(question, fixed)
            pending += [{**narrowed, each.name: each.extent} for each in reversed(ranges)]
            if not ranges:
                ended = ended or error
            if not pending or tried == _MOST_TRIED or not (ranges or _is_of_a_range(error)):
                raise ended or error from None
    raise AssertionError


def _is_of_a_range(error: CompileError | InputError) -> bool:
    """Whether the model may be built in another range; what wants a number is in none."""
    return isinstance(error, ShapeError | InputError) and not isinstance(error, UndecidedSizeError)


def _question(error: BaseException | None) -> Question | None:
    """What ``error``, or one that it was made of, left open."""
    while error is not None:
        if isinstance(error, UndecidedSizeError) and isinstance(error.question, Question):
            return error.question
        error = error.__cause__
    return None
