"""What is printed between any two passes parses and prints the same again."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.ops import node_cases
from tests.ops.test_node_cases import NAMES
from tests.whole_models.small_models import edges, projection

import landbridge as lb
from landbridge.ir.module import IRModule
from landbridge.targets import Target

TARGET = Target("llvm -mcpu=x86-64-v3")


def check_dumps(model: Any, folder: Path) -> None:
    """Whether the file that each pass dumps for ``model`` is what it parses to."""
    lb.compile(model, TARGET, dump=folder)
    files = sorted(folder.glob("[0-9]*.mlir"))  # of lowered kernels xdsl parses no selects and conversions of vectors
    assert len(files) > 10
    for file in files:
        text = file.read_text()
        assert IRModule.parse(text, (TARGET,)).print().strip() == text.strip(), file.name


@pytest.mark.sample(4, rarer=3)
@pytest.mark.parametrize("name", NAMES[::4])
def test_every_operator(name: str) -> None:
    def run(module: IRModule, feeds: Mapping[str, np.ndarray[Any, Any]]) -> Sequence[np.ndarray[Any, Any]]:
        with tempfile.TemporaryDirectory() as folder:
            check_dumps(module, Path(folder))
        return node_cases.run_compiled(module, feeds)

    node_cases.check(name, TARGET, run)


@pytest.mark.parametrize("model", [projection(4, 32, 35), edges(12, 18, 13)], ids=["columns", "channels"])
def test_last_tiles_that_are_not_full(model: Any, tmp_path: Path) -> None:
    check_dumps(model, tmp_path)
