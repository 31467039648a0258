"""Prints results on standard output and everything else on standard error."""

from __future__ import annotations

import json
import os
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle, zip_longest
from typing import Any, TextIO

from landbridge.cli.text_columns import cells, folded, padded, terminal_width
from landbridge.errors import LandbridgeError
from landbridge.text.printable import printable

#: Seconds of work after which it is announced; and between two pictures of a spinner.
PROGRESS_AFTER, _INTERVAL_S = 1.0, 0.1


#: Cells of at most this many characters are not wrapped as long as another column can be narrowed.
_WHOLE = 22
#: The least width of a column with longer cells.
_LEAST = 12
#: Blanks between columns.
_GAP = 2
#: The width of output that is not a terminal: programs that read a table need whole lines.
_NO_TERMINAL = 1000

_BOLD, _BOLD_RED, _BOLD_YELLOW, _ITALIC = "1", "1;31", "1;33", "3"
#: The characters that separate lines of a text, and the indent of continued lines.
_OF_LINES, _INDENT = "\n\t", "  "
_ERASE_LINE = "\r\x1b[2K"
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


def emit(result: Mapping[str, object]) -> None:
    """Prints ``result`` as one JSON object on standard output."""
    # json escapes all other control characters
    text = json.dumps(result, indent=2, default=str).replace("\x7f", "\\u007f")
    sys.stdout.write(f"{text}\n")


def line(text: str = "") -> None:
    """Prints ``text`` on standard output, in one line."""
    sys.stdout.write(f"{printable(text)}\n")


def lines(text: str) -> None:
    """Prints ``text`` on standard output, in separate lines."""
    sys.stdout.write(f"{printable(text, keep=_OF_LINES)}\n")


def paragraph(text: str) -> None:
    """Prints ``text`` on standard output; all lines but the first are indented."""
    sys.stdout.write(f"{_continued(text)}\n")


def message(text: str) -> None:
    """Prints ``text`` on standard error."""
    _write_message(printable(text, keep=_OF_LINES))


def _write_message(text: str) -> None:
    sys.stdout.flush()  # keeps the order where both streams are one file
    with _Spinner.lock:
        sys.stderr.write(f"{_ERASE_LINE if _Spinner.shown else ''}{text}\n")


def error(text: str) -> None:
    """Prints ``text`` on standard error as the reason why the command failed."""
    _say("error:", _BOLD_RED, text)


def warning(text: str) -> None:
    """Print ``text`` on standard error as what the command's result lacks."""
    _say("warning:", _BOLD_YELLOW, text)


def _say(subject: str, style: str, text: str) -> None:
    _write_message(f"{_styled(subject, style, sys.stderr)} {_continued(text)}")


def _continued(text: str) -> str:
    """Returns ``text`` with its later lines indented, so that a line end in a name cannot imitate another message."""
    first, *others = printable(text, keep=_OF_LINES).split("\n")
    return "\n".join([first, *(o if not o or o[0].isspace() else f"{_INDENT}{o}" for o in others)])


def tell_warnings() -> None:
    """Prints Landbridge's own warnings, which concern the arguments of the command and no line of a program, on
    standard error in the form of errors.
    """
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if category.__module__ == LandbridgeError.__module__:
            warning(str(message))
        else:
            usual(message, category, *where, **more)

    warnings.showwarning = show


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Prints ``rows`` under ``columns`` on standard output; prints nothing when there are none.

    Where long cells would get less than `_LEAST` characters a line, they are printed on separate lines, above and below
    the others of their row.
    """
    if not rows:
        return
    width = terminal_width(otherwise=_NO_TERMINAL)
    title = printable(title)
    plain = [[printable(_plain(cell)) for cell in row] for row in rows]
    widths = [max(map(cells, column)) for column in zip(columns, *plain, strict=True)]
    long = [number for number, needed in enumerate(widths) if needed > _WHOLE]
    left = width - sum(needed for needed in widths if needed <= _WHOLE) - _GAP * (len(columns) - 1)
    titles = folded(title, width) if title else []
    if left < _LEAST * len(long):
        _print_lines([*titles, *_stacked(columns, plain, widths, width)])
        return
    for number in sorted(long, key=lambda number: widths[number]):  # the narrow columns leave space for the wide ones
        widths[number] = min(widths[number], left // len(long))
        left -= widths[number]
        long = long[1:]
    _print_lines(_styled(line, _ITALIC, sys.stdout) for line in titles)
    _print_lines(_styled(line, _BOLD, sys.stdout) for line in _aligned(columns, widths))
    for row in plain:
        _print_lines(_aligned(row, widths))


def _print_lines(lines: Iterable[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)


def _aligned(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """Yields the lines of ``row``, each cell folded to its width."""
    parts = [folded(cell, width) if cells(cell) > width else [cell] for cell, width in zip(row, widths, strict=True)]
    for line in zip_longest(*parts, fillvalue=""):
        yield (" " * _GAP).join(map(padded, line, widths)).rstrip()


def _stacked(columns: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int], width: int) -> Iterator[str]:
    """Yields lines of at most ``width``: of each row a long first cell, the short cells, and the other long cells."""
    short = [number for number in range(len(columns)) if widths[number] <= _WHOLE]

    def aligned(row: Sequence[str]) -> str:
        return ("  " + (" " * _GAP).join(padded(row[number], widths[number]) for number in short)).rstrip()

    if 0 not in short:
        yield columns[0]
    yield aligned(columns)
    for row in rows:
        if 0 not in short:
            yield from folded(row[0], width, later="    ")
        yield aligned(row)
        for number, text in enumerate(row):
            if number and number not in short and text:
                yield from folded(f"{columns[number]}: {text}", width, "  ", "    ")


@contextmanager
def progress(doing: str) -> Iterator[None]:
    """Shows ``doing`` and its stage on standard error while the block runs, if that takes over a second.

    A terminal shows a spinner; anything else gets one line, and one for each stage that takes over a second.
    """
    from landbridge.reporting.stages import listening

    doing = printable(doing)
    shown = _Spinner(doing) if _is_terminal(sys.stderr) else _Line(doing)
    try:
        with listening(shown.stage):
            yield
    finally:
        shown.end()


class _Line:
    """Prints a line about work in progress: ``doing``, and its stage."""

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._wait(doing)

    def stage(self, name: str) -> None:
        """Notes that stage ``name`` begins."""
        self._timer.cancel()
        self._wait(f"{self._doing}: {printable(name)}")

    def end(self) -> None:
        self._timer.cancel()
        self._timer.join()

    def _wait(self, text: str) -> None:
        self._timer = threading.Timer(PROGRESS_AFTER, message, [f"{text} ..."])
        self._timer.daemon = True
        self._timer.start()


class _Spinner:
    """Shows the last line of a terminal during work; messages are printed above it."""

    lock = threading.Lock()  # for text that is written to standard error
    shown = False

    def __init__(self, doing: str) -> None:
        self._doing, self._text = doing, doing
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._spin, daemon=True)
        self._thread.start()

    def stage(self, name: str) -> None:
        """Notes that stage ``name`` begins."""
        self._text = f"{self._doing}: {printable(name)}"

    def end(self) -> None:
        self._over.set()
        self._thread.join()

    def _spin(self) -> None:
        if self._over.wait(PROGRESS_AFTER):
            return
        for picture in cycle(_SPINNER):
            with self.lock:
                _Spinner.shown = True
                line = folded(f"{picture} {self._text} ...", terminal_width() - 1)[0]
                sys.stderr.write(f"{_ERASE_LINE}{line}")
                sys.stderr.flush()
            if self._over.wait(_INTERVAL_S):
                break
        with self.lock:
            _Spinner.shown = False
            sys.stderr.write(_ERASE_LINE)
            sys.stderr.flush()


def _is_terminal(stream: TextIO) -> bool:
    """Returns whether ``stream`` is a terminal whose lines can be overwritten."""
    return stream.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")


def _styled(text: str, style: str, stream: TextIO) -> str:
    """Returns ``text`` in a style of ECMA-48 where ``stream`` shows it and the user allows it
    (https://no-color.org).
    """
    wanted = os.environ.get("FORCE_COLOR") or _is_terminal(stream)
    return f"\x1b[{style}m{text}\x1b[0m" if wanted and not os.environ.get("NO_COLOR") else text


def _plain(cell: object) -> str:
    if isinstance(cell, tuple | list):
        return "x".join(map(str, cell)) or "scalar"
    if isinstance(cell, float):
        return f"{cell:.3g}"
    return f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else str(cell)
