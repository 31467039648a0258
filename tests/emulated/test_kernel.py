"""Fetching the kernel to emulate."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from tests.emulated import kernel
from tests.emulated.architecture import Architecture


def test_it_is_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched = []
    others_ask = threading.Barrier(4)

    def unpack(unpacking: Path, folder: Path, architecture: Architecture) -> None:
        fetched.append(folder)
        time.sleep(0.05)  # so that those without a lock would come in
        (unpacking / "boot").mkdir()
        (unpacking / "boot" / "vmlinuz-6.1").touch()

    def ask() -> None:
        others_ask.wait()
        found.append(kernel.fetch(tmp_path / "cache").release)

    monkeypatch.setattr(kernel, "_unpack", unpack)
    found: list[str] = []
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (found, len(fetched)) == (["6.1"] * 4, 1)
