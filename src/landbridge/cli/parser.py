"""The parser of command lines.

It does not use argparse, which takes values that begin with ``-`` for options, drops a value ``--``, loses optional
arguments after options, and differs in texts and colours between versions of Python. The legal forms are: ``--option
value``, ``--option=value``, ``-o value``, ``-ovalue``, flags together as in ``-qv``, arguments anywhere, and after
``--`` only arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from landbridge.cli.help_text import HELP, help_text
from landbridge.cli.options import UsageError
from landbridge.cli.parameters import Command, Parameter, parameters_of

_HELP_NAMES = ("-h", "--help")


class CommandParser:
    """Parses the words after ``prog``, the name of ``command``, whose docstring is its help."""

    def __init__(self, prog: str, command: Command) -> None:
        self._prog = prog
        self._about = command.__doc__ or ""
        self.parameters = parameters_of(command)
        self._options = {name: parameter for parameter in self.parameters for name in parameter.names}
        self._arguments = [parameter for parameter in self.parameters if not parameter.names]

    def values(self, words: Sequence[str]) -> dict[str, Any] | None:
        """Returns the value of each parameter by its name; None where ``words`` request help. Raises UsageError."""
        given: dict[str, list[str]] = {}
        places = iter(self._arguments)
        further = next((p for p in self._arguments[-1:] if p.repeats), None)
        rest = iter(words)
        only_arguments = False
        for word in rest:
            if word == "--" and not only_arguments:
                only_arguments = True
            elif word.startswith("-") and word != "-" and not only_arguments:
                for name, value in self._options_in(word, rest):
                    if name in _HELP_NAMES:
                        return None
                    given.setdefault(self._options[name].name, []).append(value)
            else:
                place = next(places, further)
                if place is None:
                    raise UsageError(f"Unexpected argument: {word}")
                given.setdefault(place.name, []).append(word)
        for parameter in self.parameters:
            if parameter.required and parameter.name not in given:
                noun = "option" if parameter.names else "argument"
                raise UsageError(f"Missing {noun}: {parameter.shown}")
        return {parameter.name: parameter.value(given.get(parameter.name)) for parameter in self.parameters}

    def _options_in(self, word: str, rest: Iterator[str]) -> Iterator[tuple[str, str]]:
        """Yields the options in ``word`` and their values, empty for flags; a separate value is taken from ``rest``."""
        name, equals, value = word.partition("=")
        if not word.startswith("--"):  # letters: flags, and perhaps an option with its value
            name, value = word[:2], word[2:]
            while value and not self._takes_value(name, word):
                yield name, ""
                name, value = f"-{value[0]}", value[1:]
            equals, value = value and "=", value.removeprefix("=")
        if not self._takes_value(name, word):
            if equals:
                raise UsageError(f"Option {name} takes no value")
        elif not equals:
            following = next(rest, None)
            if following is None:
                raise UsageError(f"Option {name} needs a value: {name} {self._options[name].metavar}")
            value = following
        yield name, value

    def _takes_value(self, name: str, word: str) -> bool:
        if name in _HELP_NAMES:
            return False
        if name not in self._options:
            from landbridge.text.did_you_mean import did_you_mean

            where = "" if word.startswith(name) and (len(word) == 2 or word[1] == "-") else f" in {word}"
            raise UsageError(f"No such option: {name}{where}{did_you_mean(name, [*self._options, *_HELP_NAMES])}")
        return not self._options[name].is_flag

    @property
    def usage(self) -> str:
        """Returns the usage of the command, in a line."""
        needed = [f"{p.shown} {p.metavar}" for p in self.parameters if p.names and p.required]
        return " ".join([self._prog, *needed, "[OPTIONS]", *map(_argument_text, self._arguments)])

    @property
    def help(self) -> str:
        """Returns the page that ``--help`` shows."""
        arguments = [(p.metavar, p.help) for p in self._arguments]
        options = [*((_names(p), p.help) for p in self.parameters if p.names), HELP]
        return help_text(self.usage, self._about, {"arguments": arguments, "options": options})


def _argument_text(parameter: Parameter) -> str:
    """Returns an argument as a usage line shows it; the last one, if it repeats, with the ones that may follow."""
    further = f" [{parameter.metavar} ...]" if parameter.repeats else ""
    return f"{parameter.metavar}{further}" if parameter.required else f"[{parameter.metavar}{further}]"


def _names(parameter: Parameter) -> str:
    """Returns an option as help shows it: long names below each other."""
    names = ", ".join(parameter.names) if len(parameter.names) > 1 else f"    {parameter.names[0]}"
    return names if parameter.is_flag else f"{names} {parameter.metavar}"
