"""Completion in shells: the package argcomplete looks up completions of a line in a description of the commands.

``register-python-argcomplete`` of that package makes the function for a shell, which runs ``landbridge`` with what was
typed in its environment. Nothing of this is imported otherwise.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from landbridge.cli.app import COMMANDS, NAME, command, summary
from landbridge.cli.parameters import Parameter, parameters_of


def complete() -> NoReturn:
    """Prints completions for the shell that called it and ends the process; prints nothing without argcomplete."""
    try:
        import argcomplete
    except ModuleNotFoundError:
        raise SystemExit(1) from None
    line = os.environ.get("COMP_LINE", "")[: int(os.environ.get("COMP_POINT", "0"))]
    argcomplete.autocomplete(_described(line.split()), always_complete_options=False)
    raise SystemExit(1)


def _described(words: list[str]) -> ArgumentParser:
    """Returns a parser of all commands, or of the one that ``words`` name, with its parameters."""
    parser = ArgumentParser(NAME)
    parser.add_argument("--version", action="store_true", help="Print the version.")
    commands = parser.add_subparsers()
    named = next((word for word in words if word in COMMANDS), None)
    for name in COMMANDS if named is None else [named]:
        added = commands.add_parser(name, help=_escaped(summary(name)))
        for parameter in parameters_of(command(name)) if name == named else []:
            _add(added, parameter)
    return parser


def _add(parser: ArgumentParser, parameter: Parameter) -> None:
    described: dict[str, Any] = {"help": _escaped(parameter.help)}
    if parameter.is_flag:
        described["action"] = "store_true"
    elif not parameter.names:
        described["nargs"] = "*" if parameter.repeats else "?"
    action: Any = parser.add_argument(*(parameter.names or [parameter.name]), **described)
    action.completer = lambda prefix, **_: _completed(parameter, prefix)


def _completed(parameter: Parameter, prefix: str) -> Iterable[str]:
    """Returns values of ``parameter`` that begin with ``prefix``."""
    from argcomplete.completers import DirectoriesCompleter, FilesCompleter

    if parameter.argument.completer is not None:
        return parameter.argument.completer(prefix)
    if parameter.argument.folder:
        folders: Iterable[str] = DirectoriesCompleter()(prefix)
        return folders
    before, equals, path = prefix.rpartition("=") if "=FILE" in parameter.metavar else ("", "", prefix)
    if parameter.kind is Path or equals:
        return [f"{before}{equals}{name}" for name in FilesCompleter()(path)]
    return []


def _escaped(text: str) -> str:
    """Returns ``text`` with ``%`` escaped for argparse."""
    return text.replace("%", "%%")
