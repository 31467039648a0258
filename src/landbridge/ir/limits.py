"""Limits of one compile: the resources that an untrusted model may use before it is refused."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields
from numbers import Real

from landbridge.errors import BudgetError, InputError
from landbridge.records import record


@record(frozen=True)
class Limits:
    """The resources that one compile may use; None is no limit.

    ``bytes`` limits the model's files and the constants made from them, weights and folded values alike. ``nodes``
    counts functions, loops and recurrent layers unfolded. ``seconds`` is checked between steps, nodes and kernels, so
    the compile ends when its current step does. Intermediate results take memory of the process: for fully untrusted
    models limit that too (``ulimit -v``).
    """

    bytes: int | None = None
    nodes: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("bytes", "nodes", "seconds"):
            value = getattr(self, name)
            number = isinstance(value, Real) if name == "seconds" else hasattr(value, "__index__")
            legal = number and not isinstance(value, bool) and 0 < value < math.inf
            if value is not None and not legal:
                whole = "a number" if name == "seconds" else "a whole number"
                raise InputError(f"limits: {name}={value!r} is not legal; give {whole} above 0, or None for no limit")


def limits_of(given: Limits | Mapping[str, float] | None) -> Limits | None:
    """Returns the Limits that the argument ``limits=`` means; raises InputError for a mapping with unknown names."""
    if given is None or isinstance(given, Limits):
        return given
    legal = [field.name for field in fields(Limits)]
    if not isinstance(given, Mapping) or not set(given) <= set(legal):
        raise InputError(f"limits={given!r} is not legal; give lb.Limits, or a mapping with {', '.join(legal)}")
    return Limits(**given)  # type: ignore[arg-type]


@record
class _Spending:
    limits: Limits
    began: float
    constant_bytes: int = 0


_now: ContextVar[_Spending | None] = ContextVar("landbridge_limits", default=None)


@contextmanager
def limited(limits: Limits | None) -> Iterator[None]:
    """Apply ``limits`` to this thread within the ``with`` block."""
    token = _now.set(None if limits is None else _Spending(limits, time.perf_counter()))
    try:
        yield
    finally:
        _now.reset(token)


def check_time(doing: str) -> None:
    """Raises BudgetError if the allowed seconds are over, before ``doing``."""
    spending = _now.get()
    if spending is None or spending.limits.seconds is None:
        return
    spent = time.perf_counter() - spending.began
    if spent > spending.limits.seconds:
        raise BudgetError(
            f"{doing}: the compile has taken {spent:.1f} s, and limits= allows {spending.limits.seconds:g} seconds; "
            "allow more, or take a smaller model"
        )


def check_file_bytes(count: int, subject: str) -> None:
    """Raises BudgetError if ``subject`` has more bytes than allowed."""
    spending = _now.get()
    if spending is not None and spending.limits.bytes is not None and count > spending.limits.bytes:
        raise BudgetError(
            f"{subject} has {count:,} bytes, and limits= allows {spending.limits.bytes:,}; allow more, or take a "
            "smaller "
            "model"
        )


def take_constant(count: int, subject: str) -> None:
    """Count ``count`` bytes of the constant ``subject``; raises BudgetError if all constants exceed the allowed
    bytes."""
    spending = _now.get()
    if spending is not None:
        spending.constant_bytes += count
        check_file_bytes(spending.constant_bytes, f"{subject}: what is constant in the model")


def way_to_more_nodes() -> str:
    """Returns the text that tells how to allow a model more nodes."""
    spending = _now.get()
    given = spending is not None and spending.limits.nodes is not None
    return "allow more in limits=" if given else "compile(..., max_nodes=...) more"


def most_bytes() -> float:
    """Returns the most bytes that one array may have."""
    spending = _now.get()
    return math.inf if spending is None or spending.limits.bytes is None else spending.limits.bytes
