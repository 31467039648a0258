"""The application: every command, one form for errors, and the exit codes.

Command modules import the rest of Landbridge inside their functions, so that help is there at once.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from landbridge.cli.bench import bench
from landbridge.cli.cache import cache
from landbridge.cli.compare import compare
from landbridge.cli.compile import compile_
from landbridge.cli.conformance import conformance
from landbridge.cli.devices import devices
from landbridge.cli.explain import explain
from landbridge.cli.export import export
from landbridge.cli.inspect import inspect
from landbridge.cli.new_device import new_device
from landbridge.cli.opt import opt
from landbridge.cli.output import emit, error
from landbridge.cli.plan import plan
from landbridge.cli.run import run
from landbridge.cli.sanitize import EXIT_FOUND
from landbridge.cli.targets import targets
from landbridge.cli.trace import trace
from landbridge.errors import CompileError, LandbridgeError, OutOfMemoryError, SanitizerError

EXIT_ERROR = 1

_HELP = """Compile a model for a target and run it on any device, every byte where it was asked to be.

Exit codes: 0 done; 1 an error, described on standard error; 2 wrong usage; 3 compare found a
difference, conformance a broken sentence, or run --sanitize a wrong access. With --json an error is an
object {"error": {"kind", "message", "exit_code"}} on standard output, too.
"""


#: What typer raises for arguments that are not legal, whichever click it brings.
_WrongUsage: type[Exception] = typer.BadParameter.__bases__[0]

_JSON = "landbridge.json"


class _Commands(TyperGroup):
    """Prints Landbridge's errors, and those of the file system, as one message without a traceback; with ``--json`` as
    an object on standard output, too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[_JSON] = "--json" in args
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        found = super().resolve_command(ctx, args)
        for param in getattr(found[1], "params", ()):
            if getattr(param, "is_flag", False):
                param.metavar = ""  # a flag takes no value, so help shows none
        return found

    def invoke(self, ctx: Any) -> Any:
        try:
            return self._invoke(ctx)
        except _WrongUsage as wrong:
            describe = getattr(wrong, "format_message", wrong.__str__)
            self._emit(ctx, "UsageError", describe(), getattr(wrong, "exit_code", 2))
            raise
        except (typer.Exit, typer.Abort):
            raise
        except Exception as fault:
            self._emit(ctx, type(fault).__name__, str(fault), EXIT_ERROR)
            raise

    def _emit(self, ctx: Any, kind: str, text: str, code: int) -> None:
        if ctx.meta.get(_JSON):
            emit({"error": {"kind": kind, "message": text, "exit_code": code}})

    def _invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as closed:  # who reads our output, as in "| head", has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is flushed at exit
            raise typer.Exit(EXIT_ERROR) from closed
        except (LandbridgeError, OSError, MemoryError, ModuleNotFoundError) as found:
            problem = _told(found)
            code = EXIT_FOUND if isinstance(problem, SanitizerError) else EXIT_ERROR
            self._emit(ctx, type(problem).__name__, str(problem), code)
            error(str(problem))
            raise typer.Exit(code) from found


def _told(problem: Exception) -> Exception:
    """``problem``, or what it comes from: an install that only runs programs, where a package is lacking, and memory
    that ran out. Raises a module's absence that has another reason."""
    if isinstance(problem, MemoryError) and not isinstance(problem, LandbridgeError):
        said = f": {problem}" if str(problem) else ""
        return OutOfMemoryError(f"memory ran out{said}; name smaller sizes (--at, --shape), or end other programs")
    if not isinstance(problem, ModuleNotFoundError):
        return problem
    from landbridge.compiler import check_compiler

    try:
        check_compiler()
    except CompileError as why:
        return why
    raise problem


app = typer.Typer(
    name="landbridge",
    cls=_Commands,
    help=_HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)

_COMMANDS = (
    run, compile_, inspect, compare, bench, trace, explain, plan, export, opt, devices, targets, conformance,
    new_device, cache,
)  # fmt: skip

for _command in _COMMANDS:
    app.command(name=_command.__name__.rstrip("_").replace("_", "-"))(_command)


def _version(asked: bool) -> None:
    if asked:
        import platform

        from landbridge import __version__
        from landbridge.vm.host_cpu import isa

        typer.echo(f"landbridge {__version__} ({isa()}, Python {platform.python_version()})")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass
