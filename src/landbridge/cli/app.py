"""The application: finds and runs commands, reports errors in one form, and returns exit codes.

The module of a command is imported when it is run or its help is shown, and imports the rest of Landbridge inside its
functions, so that help appears at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from landbridge.cli.options import UsageError
from landbridge.cli.output import emit, error, message

if TYPE_CHECKING:
    from landbridge.cli.parameters import Command
    from landbridge.cli.parser import CommandParser

EXIT_ERROR = 1
EXIT_USAGE = 2
#: What shells say of a program that Ctrl-C ended.
_EXIT_INTERRUPTED = 130

NAME = "landbridge"
#: The commands, each a function of the module that is called like it.
COMMANDS = (
    "run", "compile", "inspect", "compare", "bench", "trace", "explain", "plan", "export", "upgrade", "opt", "devices",
    "targets", "doctor", "conformance", "new-device", "cache",
)  # fmt: skip

_ABOUT = """Compile a model for a target and run it on any device, every byte where it was asked to be.

Exit codes: 0 done; 1 an error, described on standard error; 2 wrong usage; 3 compare found a difference, conformance a
broken sentence, or run --sanitize a wrong access. With --json an error is an object {"error": {"kind", "message",
"exit_code"}} on standard output, too.
"""


def app(words: Sequence[str]) -> int:
    """Runs the command line ``words``, without the program's name, and returns the exit code.

    Landbridge's errors, and those of the file system, are one line on standard error, with ``--json`` also an object on
    standard output. Other exceptions are bugs and are raised, after that object is printed.
    """
    code = EXIT_ERROR
    try:
        code = _answered(words)
        sys.stdout.flush()
    # standard output is closed, as by "| head", or full; this also fails for what is not flushed yet
    except OSError as lost:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is flushed yet
        if not isinstance(lost, BrokenPipeError):
            error(f"standard output takes no more: {lost.strerror}")
        return code or EXIT_ERROR
    return code


def _answered(words: Sequence[str]) -> int:
    """Returns the exit code of ``words``; only bugs and a closed standard output raise."""
    as_json = "--json" in words
    try:
        return _run(words)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else EXIT_ERROR
    except KeyboardInterrupt:
        return _EXIT_INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as found:
        problem = _reported(found)
        code = EXIT_USAGE if isinstance(problem, UsageError) else _exit_code(problem)
        if as_json:
            described = problem or found
            emit({"error": {"kind": type(described).__name__, "message": str(described), "exit_code": code}})
        if problem is None:
            raise
        if code == EXIT_USAGE:
            message(_usage(words))
        error(str(problem))
        return code


def _run(words: Sequence[str]) -> int:
    name = words[0] if words else "--help"
    if name in COMMANDS:
        parser = parser_of(name)
        values = parser.values(words[1:])
        if values is None:
            sys.stdout.write(parser.help)
        else:
            command(name)(**values)
    elif name in ("-h", "--help"):
        sys.stdout.write(_help())
        return 0 if words else EXIT_USAGE
    elif name == "--version":
        _print_version()
    else:
        from landbridge.text.did_you_mean import did_you_mean

        if not name.startswith("-"):
            raise UsageError(f"No such command: {name}{did_you_mean(name, COMMANDS)}")
        meant = next((word for word in words if word in COMMANDS), None)
        behind = "" if meant is None else f"; options of a command stand behind its name: {NAME} {meant} {name}"
        raise UsageError(f"No such option: {name}{behind or did_you_mean(name, ['--version', '--help'])}")
    return 0


def command(name: str) -> Command:
    """Returns the function of the command ``name``, whose module is imported."""
    stem = name.replace("-", "_")
    found: Command = getattr(import_module(f"{__package__}.{stem}"), stem)
    return found


def parser_of(name: str) -> CommandParser:
    """Returns the parser of the command ``name``, whose module is imported."""
    from landbridge.cli.parser import CommandParser

    return CommandParser(f"{NAME} {name}", command(name))


def summary(name: str) -> str:
    """Returns what the command ``name`` does: the first paragraph of its help, in a line."""
    from landbridge.cli.help_text import without_marks

    return " ".join(without_marks(command(name).__doc__ or "").split("\n\n")[0].split())


def _help() -> str:
    from landbridge.cli.help_text import HELP, help_text

    sections = {
        "options": [("    --version", "Print the version."), HELP],
        "commands": [(name, summary(name)) for name in COMMANDS],
    }
    return help_text(f"{NAME} COMMAND [OPTIONS]", _ABOUT, sections)


def _usage(words: Sequence[str]) -> str:
    """Returns the usage of the command in ``words``, in a line."""
    if words and words[0] in COMMANDS:
        return f"usage: {parser_of(words[0]).usage}; {NAME} {words[0]} --help says more"
    return f"usage: {NAME} COMMAND [OPTIONS]; {NAME} --help lists the commands"


def _reported(problem: Exception) -> Exception | None:
    """Returns ``problem``, or the error that caused it: a missing package in an installation that only runs programs,
    or exhausted memory. Returns None for a bug, as for a module that is missing for another reason.
    """
    from landbridge.errors import CompileError, LandbridgeError, OutOfMemoryError

    if isinstance(problem, LandbridgeError | OSError):
        return problem
    if isinstance(problem, MemoryError):
        text = f": {problem}" if str(problem) else ""
        return OutOfMemoryError(f"memory ran out{text}; name smaller sizes (--at, --shape), or end other programs")
    if isinstance(problem, ModuleNotFoundError):
        from landbridge.compiler.api import check_compiler

        try:
            check_compiler()
        except CompileError as why:
            return why
    return None


def _exit_code(problem: Exception | None) -> int:
    from landbridge.cli.sanitize import EXIT_FOUND
    from landbridge.errors import SanitizerError

    return EXIT_FOUND if isinstance(problem, SanitizerError) else EXIT_ERROR


def _print_version() -> None:
    from landbridge import __version__
    from landbridge.vm.host_cpu import isa

    print(f"{NAME} {__version__} ({isa()}, Python {sys.version.split()[0]})")
