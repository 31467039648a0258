"""Reads the parameters of a command from its function's signature, and parses their texts."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from landbridge.cli.options import CliArgument, CliOption, UsageError
from landbridge.text.did_you_mean import file_like

Command = Callable[..., None]

_METAVARS = {int: "N", float: "NUMBER", Path: "FILE"}


@dataclass(frozen=True)
class Parameter:
    """A parameter ``name`` of a command: values of ``kind``, a list of them where it ``repeats``."""

    name: str
    kind: type
    repeats: bool
    required: bool
    default: object
    argument: CliArgument

    @property
    def names(self) -> list[str]:
        """Returns the names of an option, the short one first; none for an argument."""
        if not isinstance(self.argument, CliOption):
            return []
        long = self.argument.long or f"--{self.name.replace('_', '-')}"
        return [self.argument.short, long] if self.argument.short else [long]

    @property
    def is_flag(self) -> bool:
        return self.kind is bool

    @property
    def metavar(self) -> str:
        """Returns the name of the value in help."""
        usual = "DIR" if self.argument.folder else _METAVARS.get(self.kind, self.name.upper())
        return self.argument.metavar or usual

    @property
    def shown(self) -> str:
        """Returns the name of the parameter in messages."""
        return self.names[-1] if self.names else self.metavar

    @property
    def help(self) -> str:
        """Returns its help, with the legal values and the default."""
        argument = self.argument
        legal = [f"{word} {limit:g}" for word, limit in (("at least", argument.minimum), ("at most", argument.maximum))
                 if limit is not None]  # fmt: skip
        usual = [] if self.required or self.is_flag or self.default in (None, "") else [f"default: {self.default}"]
        required = ["required"] if self.required and self.names else []
        more = ", ".join([*legal, *usual, *required])
        return f"{argument.help} ({more})" if more else argument.help

    def value(self, texts: Sequence[str] | None) -> Any:
        """Parses ``texts`` to a value, None to the default; raises UsageError for an illegal one."""
        if texts is None:
            return self.default
        if self.is_flag:
            return True
        values = [self._value(text) for text in texts]
        return values if self.repeats else values[-1]

    def _value(self, text: str) -> Any:
        if self.kind is Path:
            return self._path(text)
        if self.kind in (int, float):
            return self._number(text)
        return text

    def _number(self, text: str) -> float:
        noun = "a whole number" if self.kind is int else "a number"
        try:
            number: float = self.kind(text)
        except ValueError:
            raise UsageError(f"{text!r} is not {noun}", self.shown) from None
        low, high = self.argument.minimum, self.argument.maximum
        if (low is not None and not number >= low) or (high is not None and not number <= high):
            limits = [f"at least {low:g}"] if low is not None else []
            limits += [f"at most {high:g}"] if high is not None else []
            raise UsageError(f"{text} is not {noun} of {' and '.join(limits)}", self.shown)
        return number

    def _path(self, text: str) -> Path:
        path, argument = Path(text), self.argument
        noun = "folder" if argument.folder else "file"
        try:
            is_folder = stat.S_ISDIR(path.stat().st_mode)
        except OSError as error:
            if argument.exists:
                absent = isinstance(error, FileNotFoundError)
                reason = f"does not exist{file_like(path)}" if absent else f"cannot be read: {error.strerror}"
                raise UsageError(f"{noun} {text!r} {reason}", self.shown) from None
            return path
        if (argument.file and is_folder) or (argument.folder and not is_folder):
            raise UsageError(f"{noun} {text!r} is a {'directory' if is_folder else 'file'}", self.shown)
        if argument.exists and not os.access(path, os.R_OK):
            raise UsageError(f"{noun} {text!r} cannot be read: Permission denied", self.shown)
        return path


def parameters_of(command: Command) -> list[Parameter]:
    """Returns the parameters of ``command``, a function whose every parameter is ``Annotated`` with a CliOption or a
    CliArgument.
    """
    hints = get_type_hints(command, include_extras=True)
    code = command.__code__
    names = code.co_varnames[: code.co_argcount]
    defaults: tuple[object, ...] = command.__defaults__ or ()
    declared = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    return [_parameter(name, hints[name], name not in declared, declared.get(name)) for name in names]


def _parameter(name: str, hint: Any, required: bool, default: object) -> Parameter:
    # Python 3.10 makes the hint of a parameter whose default is None a union of it and None.
    annotated = next(each for each in (hint, *get_args(hint)) if hasattr(each, "__metadata__"))
    argument: CliArgument = annotated.__metadata__[0]
    declared = get_args(annotated)[0]
    members = get_args(declared) if get_origin(declared) in (Union, UnionType) else (declared,)
    kind = next(member for member in members if member is not NoneType)
    repeats = get_origin(kind) is list
    return Parameter(name, get_args(kind)[0] if repeats else kind, repeats, required, default, argument)
