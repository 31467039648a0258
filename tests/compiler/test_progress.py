"""Progress of a compile: a line for who looks, and nothing for anybody else."""

from __future__ import annotations

import io
import sys
import threading
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from landbridge.compiler import progress
from landbridge.reporting.stages import begin_stage, listening


class Terminal(io.StringIO):
    """A terminal that keeps what is written, and says when there is something."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        count = super().write(text)
        self.written.set()
        return count


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setattr(progress, "AFTER", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv(progress.SWITCH, raising=False)
    there = Terminal()  # pytest puts its own in the place of sys.stderr when a test begins
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=there, modules=sys.modules))
    return there


def _compile(terminal: Terminal, name: str = "det.onnx") -> str:
    """What a compile that takes long writes."""
    with progress.compile_progress(name):
        begin_stage("fuse")
        terminal.written.wait(10)
    return terminal.getvalue()


def test_a_terminal_has_one_line_that_is_erased(terminal: Terminal) -> None:
    lines = _compile(terminal).split("\r\x1b[K")
    assert lines[1].startswith("Compiling det.onnx: fuse ...")
    assert lines[-1] == "" and "\n" not in "".join(lines)


def test_a_name_does_nothing_to_the_terminal(terminal: Terminal) -> None:
    assert "\x07" not in _compile(terminal, "\x07\n\x1b[2J")


def test_a_short_compile_shows_nothing(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "AFTER", 60.0)
    with progress.compile_progress("det.onnx"):
        begin_stage("fuse")
    assert terminal.getvalue() == ""


def test_the_line_is_erased_where_a_compile_fails(terminal: Terminal) -> None:
    with pytest.raises(ValueError, match="mine"), progress.compile_progress("det.onnx"):
        terminal.written.wait(10)
        raise ValueError("mine")
    assert terminal.getvalue().endswith("\r\x1b[K")


def _quiet(terminal: Terminal) -> bool:
    with progress.compile_progress("det.onnx"):
        begin_stage("fuse")
        return not terminal.written.wait(0.2)


def test_nothing_is_shown_where_it_is_turned_off(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(progress.SWITCH, "0")
    assert _quiet(terminal)


def test_nothing_is_shown_where_stderr_is_a_file(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "isatty", lambda: False)
    assert _quiet(terminal)


def test_nothing_is_shown_where_somebody_else_listens(terminal: Terminal) -> None:
    heard: list[str] = []
    with listening(heard.append):
        assert _quiet(terminal)
    assert heard == ["fuse"]


def test_of_two_compiles_one_is_shown(terminal: Terminal) -> None:
    with progress.compile_progress("first.onnx"):
        other = threading.Thread(target=_compile, args=(terminal, "second.onnx"))
        other.start()
        other.join()
    assert "first.onnx" in terminal.getvalue() and "second.onnx" not in terminal.getvalue()


def test_a_notebook_has_a_display_that_changes(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    def show(page: str, display_id: bool = False) -> Any:
        shown.append(page)
        terminal.written.set()
        return SimpleNamespace(update=shown.append)

    shell, display = ModuleType("IPython"), ModuleType("IPython.display")
    shell.__dict__["get_ipython"] = lambda: SimpleNamespace(kernel=object())
    display.__dict__.update(HTML=str, display=show)
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    assert _compile(terminal, "<b>.onnx") == ""
    assert "Compiling &lt;b&gt;.onnx: fuse" in shown[0]
    assert "Compiling &lt;b&gt;.onnx: done" in shown[-1]
