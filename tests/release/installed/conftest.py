"""Tests of an installation: they import landbridge, numpy and pytest, and are copied to where nothing else is.

In the repository they run too, on programs that are compiled there and then.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Program:
    """A compiled program, ``file``, with inputs and what they become, bit for bit."""

    file: Path
    inputs: list[Array]
    outputs: list[Array]


def _read(folder: Path, name: str) -> Program:
    with np.load(folder / f"{name}.npz") as arrays:
        count = len(arrays.files) // 2
        inputs, outputs = ([arrays[f"{kind}{case}"] for case in range(count)] for kind in "xy")
    return Program(folder / f"{name}.lbx", inputs, outputs)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    given = os.environ.get("LANDBRIDGE_RELEASE_PROGRAMS")
    if given is not None:
        return Path(given)
    from tests.release.programs import write

    return write(tmp_path_factory.mktemp("programs"))


@pytest.fixture
def fixed(folder: Path) -> Program:
    """One whose sizes are known."""
    return _read(folder, "fixed")


@pytest.fixture
def open_sizes(folder: Path) -> Program:
    """One whose sizes differ from input to input."""
    return _read(folder, "open")
