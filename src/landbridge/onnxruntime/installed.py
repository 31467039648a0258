"""Landbridge in the place of onnxruntime for programs whose imports cannot be changed."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from types import ModuleType

_OURS = "landbridge.onnxruntime"
_THEIRS = "onnxruntime"


def install_as_onnxruntime() -> None:
    """Let every later ``import onnxruntime`` of this process find ``landbridge.onnxruntime``.

    For packages of others that import onnxruntime themselves; ``python -m landbridge.onnxruntime PROGRAM`` does it for
    a whole program. Raises RuntimeError where onnxruntime was imported before: who has it would keep it.
    """
    found = sys.modules.get(_THEIRS)
    if found is not None and found.__name__ != _OURS:
        raise RuntimeError(
            "onnxruntime is imported already, and what imported it would go on with it; call install_as_onnxruntime() "
            "before the imports of other packages, or run the program by python -m landbridge.onnxruntime"
        )
    for name, module in _modules(importlib.import_module(_OURS)):
        sys.modules[name.replace(_OURS, _THEIRS, 1)] = module


def _modules(package: ModuleType) -> list[tuple[str, ModuleType]]:
    """``package`` and all modules in it by name: each has to be known, or it would be imported a second time."""
    found = [(package.__name__, package)]
    for each in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if not each.name.endswith(".__main__"):
            module = importlib.import_module(each.name)
            found += _modules(module) if each.ispkg else [(each.name, module)]
    return found
