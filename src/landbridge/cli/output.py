"""What commands print: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import os
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from landbridge.errors import LandbridgeError

if TYPE_CHECKING:
    from rich.console import Console

#: Seconds of work after which it is announced.
PROGRESS_AFTER = 1.0


#: Cells of so many characters are not broken while there is another column to narrow.
_WHOLE = 22
#: A column of longer ones needs so many to be read.
_LEAST = 12
#: Blanks between columns.
_GAP = 2
#: Columns of what is no terminal: programs that read a table want its lines whole.
_NO_TERMINAL = 1000


def emit(result: Mapping[str, object]) -> None:
    """Print ``result`` as one JSON object on standard output."""
    sys.stdout.write(json.dumps(result, indent=2, default=str) + "\n")


def message(text: str) -> None:
    """Print ``text`` on standard error."""
    sys.stderr.write(text + "\n")


def error(text: str) -> None:
    """Print ``text`` on standard error as the reason why the command failed."""
    console = _console(stderr=True)
    console.print("[bold red]error:[/]", end=" ")
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def tell_warnings() -> None:
    """Have Landbridge's own warnings, which speak of what the command was given and of no line of a program, printed on
    standard error in the form of errors."""
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if category.__module__ != LandbridgeError.__module__:
            usual(message, category, *where, **more)
            return
        console = _console(stderr=True)
        console.print("[bold yellow]warning:[/]", end=" ")
        console.print(str(message), markup=False, highlight=False, soft_wrap=True)

    warnings.showwarning = show


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print ``rows`` under ``columns`` on standard output; nothing when there are none.

    Where long cells would be left less than `_LEAST` characters a line, they are lines of their own, above and below
    the others of their row.
    """
    from rich.markup import escape
    from rich.table import Table

    if not rows:
        return
    console = _console(stderr=False)
    plain = [[_plain(cell) for cell in row] for row in rows]
    widths = [max(map(len, (column, *cells))) for column, *cells in zip(columns, *plain, strict=True)]
    long = [number for number, width in enumerate(widths) if width > _WHOLE]
    whole = sum(width for width in widths if width <= _WHOLE)
    if whole + _GAP * (len(columns) - 1) + _LEAST * len(long) > console.width:
        for line in (title, *_stacked(columns, plain, widths, console.width)):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        return
    grid = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for number, column in enumerate(columns):
        grid.add_column(column, overflow="fold", no_wrap=number not in long)
    for cells in plain:
        grid.add_row(*map(escape, cells))
    console.print(grid)


def _stacked(columns: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int], width: int) -> Iterator[str]:
    """Lines of at most ``width``: of each row a first cell that is long, those that are not, the other long ones."""
    short = [number for number in range(len(columns)) if widths[number] <= _WHOLE]

    def beside(cells: Sequence[str]) -> str:
        return ("  " + (" " * _GAP).join(cells[number].ljust(widths[number]) for number in short)).rstrip()

    if 0 not in short:
        yield columns[0]
    yield beside(columns)
    for cells in rows:
        if 0 not in short:
            yield from wrap(cells[0], width, subsequent_indent="    ")
        yield beside(cells)
        for number, text in enumerate(cells):
            if number and number not in short and text:
                yield from wrap(f"{columns[number]}: {text}", width, initial_indent="  ", subsequent_indent="    ")


@contextmanager
def progress(doing: str) -> Iterator[None]:
    """Say ``doing`` on standard error while the block runs, if that takes over a second, and the stage it is in.

    A terminal shows a spinner; anything else gets one line, and one for each stage that takes over a second.
    """
    from landbridge.stages import listening

    shown = _Shown(doing)
    try:
        with listening(shown.stage):
            yield
    finally:
        shown.end()


class _Shown:
    """What is said of work that goes on: ``doing``, and its stage."""

    def __init__(self, doing: str) -> None:
        console = _console(stderr=True)
        self._doing, self._stage = doing, ""
        self._status = console.status(f"{doing} ...") if console.is_terminal else None
        self._wait()

    def stage(self, name: str) -> None:
        """``name`` begins now."""
        self._stage = f": {name}"
        if self._status is not None:
            self._status.update(f"{self._doing}{self._stage} ...")
        else:
            self._timer.cancel()
            self._wait()

    def end(self) -> None:
        self._timer.cancel()
        self._timer.join()
        if self._status is not None:
            self._status.stop()

    def _wait(self) -> None:
        self._timer = threading.Timer(PROGRESS_AFTER, self._say)
        self._timer.daemon = True
        self._timer.start()

    def _say(self) -> None:
        if self._status is not None:
            self._status.start()
        else:
            message(f"{self._doing}{self._stage} ...")


def _console(stderr: bool) -> Console:
    from rich.console import Console  # honours NO_COLOR

    stream = sys.stderr if stderr else sys.stdout
    unbound = not stderr and not stream.isatty() and "COLUMNS" not in os.environ
    return Console(stderr=stderr, width=_NO_TERMINAL if unbound else None)


def _plain(cell: object) -> str:
    if isinstance(cell, tuple | list):
        return "x".join(map(str, cell)) or "scalar"
    if isinstance(cell, float):
        return f"{cell:.3g}"
    return f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else str(cell)
