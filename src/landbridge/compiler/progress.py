"""Shows the stage of a running compile in a terminal or a notebook."""

from __future__ import annotations

import contextvars
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from shutil import get_terminal_size
from typing import Any, Protocol, TextIO

from landbridge.process.locks import new_lock
from landbridge.reporting.stages import has_listener, listening
from landbridge.text.markup import markup
from landbridge.text.printable import printable

#: The environment variable that, at ``0``, turns it off.
SWITCH = "LANDBRIDGE_PROGRESS"
#: Seconds after which a compile is worth a line.
AFTER = 1.0

#: Held by the compile that is shown: lines of two at once would overwrite each other.
_shown = new_lock()


class _Location(Protocol):
    """An output that shows one line of text and can replace it."""

    def show(self, text: str) -> None: ...
    def end(self, text: str) -> None: ...


@contextmanager
def compile_progress(model: str) -> Iterator[None]:
    """Shows the stage of a compile of ``model`` while the block runs, if that takes more than ``AFTER`` seconds.

    A terminal gets one line on standard error, which is erased at the end, a notebook a line that stays. Nothing is
    shown elsewhere, nor where a listener of the stages is set already or another compile is shown.
    """
    place = None if os.environ.get(SWITCH) == "0" or has_listener() else _place()
    if place is None or not _shown.acquire(blocking=False):
        yield
        return
    try:
        line = _Line(f"Compiling {printable(model)}", place)
        try:
            with listening(line.stage):
                yield
        except BaseException:
            line.end("not compiled")
            raise
        line.end("done")
    finally:
        _shown.release()


class _Line:
    """A line that appears after ``AFTER`` seconds and then shows each stage; a thread of its own writes it."""

    def __init__(self, doing: str, place: _Location) -> None:
        self._doing, self._place, self._stage = doing, place, ""
        self._began, self._over = time.monotonic(), threading.Event()
        # the context variables identify the cell of a notebook
        run: Callable[..., None] = contextvars.copy_context().run
        self._thread = threading.Thread(target=run, args=(self._watch,), daemon=True)
        self._thread.start()

    def stage(self, name: str) -> None:
        """Notes that stage ``name`` begins."""
        self._stage = f": {printable(name)}"

    def end(self, how: str) -> None:
        """Ends the line, with ``how`` the compile ended; nothing is shown after it."""
        self._over.set()
        self._thread.join()
        if self._seconds() >= AFTER:
            self._place.end(f"{self._doing}: {how}, {self._seconds():.1f} s")

    def _watch(self) -> None:
        wait = AFTER
        while not self._over.wait(wait):
            self._place.show(f"{self._doing}{self._stage} ... {self._seconds():.0f} s")
            wait = 0.25

    def _seconds(self) -> float:
        return time.monotonic() - self._began


def _place() -> _Location | None:
    """Returns the output of this process that a person sees: a notebook cell or a terminal; None where
    there is none.
    """
    shell = _shell()
    if shell is not None and getattr(shell, "kernel", None) is not None:
        return _Notebook()
    error = sys.stderr
    if error is None or error.closed or not error.isatty() or os.environ.get("TERM") == "dumb":
        return None
    return _Terminal(error)


def _shell() -> Any:
    """Returns the IPython shell that runs this process, or None; IPython is not imported for it."""
    module = sys.modules.get("IPython")
    return None if module is None or not hasattr(module, "get_ipython") else module.get_ipython()


class _Terminal:
    """Shows a line in the terminal's current row, which ``stream`` writes to. Nothing is raised where it is closed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def show(self, text: str) -> None:
        """Replaces the line by ``text``, cut to the width of the terminal."""
        width = max(get_terminal_size().columns - 1, 1)
        self._write(f"\r\x1b[K{text[:width]}")

    def end(self, text: str) -> None:
        """Erases the line; ``text``, which other outputs leave in its place, is not shown."""
        self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # a closed terminal must not end a compile
            pass


class _Notebook:
    """The output of the notebook cell that compiles."""

    def __init__(self) -> None:
        self._display: Any = import_module("IPython.display")
        self._handle: Any = None

    def show(self, text: str) -> None:
        """Replaces the output by ``text``."""
        page = self._display.HTML(f'<span style="font-size:13px">{markup(text)}</span>')
        if self._handle is None:
            self._handle = self._display.display(page, display_id=True)
        else:
            self._handle.update(page)

    def end(self, text: str) -> None:
        """Leaves ``text`` as the final output, where a line was shown before."""
        if self._handle is not None:
            self.show(text)
