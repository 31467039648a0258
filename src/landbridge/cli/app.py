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
from landbridge.cli.new_device import new_device
from landbridge.cli.opt import opt
from landbridge.cli.output import error
from landbridge.cli.plan import plan
from landbridge.cli.run import run
from landbridge.cli.sanitize import EXIT_FOUND
from landbridge.cli.targets import targets
from landbridge.cli.trace import trace
from landbridge.errors import LandbridgeError, SanitizerError

EXIT_ERROR = 1

_HELP = """Compile a model for a target and run it on any device, every byte where it was asked to be.

Exit codes: 0 done; 1 an error, described on standard error; 2 wrong usage; 3 compare found a
difference, conformance a broken sentence, or run --sanitize a wrong access.
"""


class _Commands(TyperGroup):
    """Prints Landbridge's errors, and those of the file system, as one message without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as closed:  # who reads our output, as in "| head", has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is flushed at exit
            raise typer.Exit(EXIT_ERROR) from closed
        except (LandbridgeError, OSError) as problem:
            error(str(problem))
            raise typer.Exit(EXIT_FOUND if isinstance(problem, SanitizerError) else EXIT_ERROR) from problem


app = typer.Typer(
    name="landbridge",
    cls=_Commands,
    help=_HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)

for _command in (run, compile_, compare, bench, trace, plan, opt, devices, targets, conformance, new_device, cache):
    app.command(name=_command.__name__.rstrip("_").replace("_", "-"))(_command)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(f"landbridge {version('landbridge')}")
        except PackageNotFoundError:
            typer.echo("landbridge, from a source tree that is not installed")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass
