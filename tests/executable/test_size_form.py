"""Sizes as files have them: read as they were written, and the same text read once."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

import pytest

from landbridge.errors import ShapeError
from landbridge.executable import size_form
from landbridge.executable.size_form import read_size, size_text
from landbridge.sizes.reading import read_parts
from landbridge.sizes.size import Extent
from landbridge.sizes.terms import Symbol

TEXT = "W/8 + 3; W in 32..2560:8"


def test_a_size_is_read_as_it_was_written() -> None:
    assert read_size(size_text(read_size(TEXT))) == read_size(TEXT)


@pytest.mark.parametrize(("remembered", "parsed"), [(1 << 12, 1), (8, 3)], ids=["short", "long"])
def test_the_same_text_is_parsed_once(monkeypatch: pytest.MonkeyPatch, remembered: int, parsed: int) -> None:
    """A program of open dimensions has each text some times; long ones of a stranger's file could fill memory."""
    seen: list[str] = []

    def counted(text: str, symbols: Mapping[str, Symbol | int], parts: MutableMapping[str, Extent]) -> Extent:
        seen.append(text)
        return read_parts(text, symbols, parts)

    monkeypatch.setattr(size_form, "read_parts", counted)
    monkeypatch.setattr(size_form, "_SHORT", remembered)
    size_form._remembered.cache_clear()
    assert len({read_size(TEXT) for _ in range(3)}) == 1
    assert seen == ["W/8 + 3"] * parsed


@pytest.mark.parametrize("text", ["3; W in 32..2560", "W +", "W; V in 3..4", "W" * 70_000])
def test_what_is_none_is_refused_each_time(text: str) -> None:
    for _ in range(2):
        with pytest.raises(ShapeError):
            read_size(text)
