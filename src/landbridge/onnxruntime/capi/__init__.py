"""The package from which programs import onnxruntime's exceptions; its modules are imported when first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_MODULES = ("_pybind_state", "onnxruntime_inference_collection", "onnxruntime_pybind11_state")


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
