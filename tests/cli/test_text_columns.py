"""Columns of text: characters that take two, lines that are broken, and tables of them."""

from __future__ import annotations

import pytest

from landbridge.cli.output import table
from landbridge.cli.text_columns import cells, folded, padded, terminal_width


@pytest.mark.parametrize(("text", "columns"), [("", 0), ("abc", 3), ("模型", 4), ("ﾓﾃﾞﾙ", 4), ("é", 1), ("e\u0301", 1)])
def test_columns_of_text(text: str, columns: int) -> None:
    assert cells(text) == columns
    assert cells(padded(text, 9)) == 9


def test_text_is_broken_at_blanks() -> None:
    assert folded("one two three", 7) == ["one two", "three"]
    assert folded("one two three", 8, "> ", "  ") == ["> one", "  two", "  three"]
    assert folded("", 8, "> ") == ["> "]


def test_words_longer_than_a_line_are_broken() -> None:
    assert folded("a " + "b" * 12, 5) == ["a", "bbbbb", "bbbbb", "bb"]
    assert folded("模型模型模", 5) == ["模型", "模型", "模"]
    assert folded("模型", 1) == ["模", "型"]  # a line has to have something


@pytest.mark.parametrize("width", [1, 5, 12, 80])
def test_no_line_is_longer_and_no_word_is_lost(width: int) -> None:
    text = "What frames of input N are, as in x=dtype:uint8,scale:0.017; or layout, mean, shape, ..."
    lines = folded(text, width, later=" " if width > 2 else "")
    assert max(map(cells, lines)) <= width
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_wide_characters_align(capsys: pytest.CaptureFixture[str]) -> None:
    table("outputs", ("name", "shape"), [("模型", (1, 2)), ("plain", ()), ("e\u0301", 1234.5)])
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["outputs", "name   shape", "模型   1x2", "plain  scalar", "e\u0301      1.23e+03"]


def test_long_columns_share_what_is_left(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    table("", ("option", "legal", "meaning"), [("-mcpu", "text without NUL or such", "word " * 20), ("-x", "", "")])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 60
    assert lines[0].split() == ["option", "legal", "meaning"]
    assert lines[1].startswith("-mcpu   text without NUL or such  word word word")
    assert " ".join(" ".join(line[34:] for line in lines[1:-1]).split()) == ("word " * 20).strip()


def test_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    for declared, width in (("60", 60), ("0", 77), ("x", 77), ("", 77)):
        monkeypatch.setenv("COLUMNS", declared)
        assert terminal_width(otherwise=77) == width
