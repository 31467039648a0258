"""A program written for onnxruntime, run on it and on ours: it must give the same."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

NAMES = ("onnxruntime", "landbridge.onnxruntime")


def both(program: Callable[..., Any], *args: Any) -> Any:
    """What ``program`` gives with ours, after it gave the same with onnxruntime."""
    results = [program(importlib.import_module(name), *args) for name in NAMES]
    same(*results)
    return results[1]


def same(left: Any, right: Any) -> None:
    if isinstance(left, np.ndarray):
        assert left.dtype == right.dtype
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)
    elif isinstance(left, list | tuple):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            same(one, other)
    else:
        assert left == right
