"""Metadata of ``Annotated`` that describe parameters of commands on the command line; and the error for wrong use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

from landbridge.errors import LandbridgeError

#: Values that complete the text it is given.
Completer = Callable[[str], list[str]]


class UsageError(LandbridgeError):
    """Raised for an illegal command line; ``parameter`` is the option or argument with the wrong value."""

    def __init__(self, text: str, parameter: str = "") -> None:
        super().__init__(f"Invalid value for {parameter}: {text}" if parameter else text)


@dataclass(frozen=True)
class CliArgument:
    """A positional parameter. The last one may be a ``list``, which takes all words that are left.

    ``metavar``: what help calls the value; derived from the type where it is empty. ``minimum``, ``maximum``: of
    numbers, both legal. ``file``, ``folder``: the path may not be the other one; ``exists``: it must exist.
    """

    _: KW_ONLY
    metavar: str = ""
    help: str = ""
    minimum: float | None = None
    maximum: float | None = None
    file: bool = False
    folder: bool = False
    exists: bool = False
    completer: Completer | None = None


@dataclass(frozen=True)
class CliOption(CliArgument):
    """A parameter with names: ``long``, as in ``--device``, and perhaps ``short``, as in ``-d``.

    A ``bool`` is a flag, a ``list`` an option that can be repeated. Without ``long`` it is the parameter's own name.
    """

    long: str = ""
    short: str = ""
