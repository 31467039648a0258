from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from landbridge.frontend.onnx import read_ahead
from landbridge.frontend.onnx.read_ahead import ReadAhead

NAMES = [f"w{i}" for i in range(12)]
SIZES = dict.fromkeys(NAMES, 1000)


class File:
    """Arrays of 1000 bytes, and which were read, by the main thread or by another."""

    def __init__(self, broken: str = "") -> None:
        self.read: list[tuple[str, bool]] = []
        self._broken = broken

    def __call__(self, name: str) -> np.ndarray[Any, Any]:
        self.read.append((name, threading.current_thread() is threading.main_thread()))
        if name == self._broken:
            raise OSError("cut")
        return np.full(1000, int(name[1:]), np.uint8)


def idle() -> None:
    """Waits until no thread reads ahead."""
    for thread in threading.enumerate():
        if thread.name == "read ahead":
            thread.join(60)


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("most", [0, 2500, 1 << 20])
def test_each_is_what_the_file_has_and_is_read_once(order: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "_AHEAD", most)
    file = File()
    ahead = ReadAhead(file, SIZES)
    for name in NAMES[::order]:
        assert (ahead.get(name) == int(name[1:])).all()
    assert sorted(name for name, _ in file.read) == sorted(NAMES)


def test_a_thread_reads_before_it_is_requested_and_no_more_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "_AHEAD", 3500)
    file = File()
    ahead = ReadAhead(file, SIZES)
    idle()
    assert file.read == [(name, False) for name in NAMES[:3]]
    for name in NAMES[:2]:
        ahead.get(name)
    idle()
    assert file.read == [(name, False) for name in NAMES[:5]]
    assert "read ahead" not in {thread.name for thread in threading.enumerate()}


def test_what_was_taken_is_read_anew() -> None:
    ahead = ReadAhead(File(), SIZES)
    ahead.get("w3")[:] = 0
    assert (ahead.get("w3") == 3).all()


def test_who_asks_for_what_cannot_be_read_is_reported() -> None:
    file = File("w2")
    ahead = ReadAhead(file, SIZES)
    idle()
    with pytest.raises(OSError, match="cut"):
        ahead.get("w2")
    assert (ahead.get("w5") == 5).all()
